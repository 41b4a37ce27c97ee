"""scaling: how the validation loss falls with the size of the model, of the data and of the computation."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError, lock, mix, read_json, write_json, write_text
from wonderland.data.split import Split
from wonderland.road.fitting import open_source, seeded
from wonderland.road.parts import is_closed_form
from wonderland.road.plan import Plan, make_config, make_plan, resolve_measured, threads_for
from wonderland.road.request import Request
from wonderland.road.searching import trial_request
from wonderland.road.stages import Stages
from wonderland.solvers.power_law import PowerLaw, best_size, power_law
from wonderland.understand import cost, page, svg
from wonderland.understand.charts import compact, escape

POINTS, RESULTS, REPORT = "points", "scaling.json", "report.html"
SHARES = (0.25, 0.5, 1.0)
LEAST = 3  # different sizes for a law


@dataclass(frozen=True)
class Point:
    """One training: what it was given, and its validation losses after so many operations."""

    setting: Any
    share: float
    parameters: int
    rows: int
    seen: int
    operations: float
    loss: float
    curve: list[tuple[float, float]]


@dataclass(frozen=True)
class Scaling:
    """The points of a study of sizes, and the laws through them; None where there are too few different sizes."""

    setting: str
    points: list[Point]
    by_parameters: PowerLaw | None
    by_rows: PowerLaw | None
    by_operations: PowerLaw | None
    per_row: float
    folder: Path | None = None

    def best(self, operations: float) -> tuple[float, float] | None:
        """Parameters and rows that reach the smallest loss with so many operations; None without laws that fall."""
        if self.by_parameters is None or self.by_rows is None:
            return None
        if min(self.by_parameters.exponent, self.by_rows.exponent) <= 0:
            return None
        return best_size(operations, self.by_parameters, self.by_rows, per_token=self.per_row)


def scaling(
    source: Any,
    target: str | None = None,
    *,
    sizes: Sequence[Any],
    setting: str = "model.dim",
    shares: Sequence[float] = SHARES,
    out: str | Path | None = None,
    test: Any = None,
    operations: float | None = None,
    on_point: Callable[[Point], Any] | None = None,
    **options: Any,
) -> Scaling:
    """Train models of several sizes on several shares of the training rows, and fit laws to their validation losses.

    Args:
        source, target, test, options: as in `wonderland.fit`; the same in all trainings.
        sizes: values of the setting, such as widths; `setting` is a path as in `--set`.
        shares: shares of the training rows. Data that come in one piece are not cut; the law of the data then follows the rows seen.
        out: a folder for the points and the report; trainings that are there already are not repeated, and begun ones go on.
        operations: a budget for which the report says the best sizes of model and data.
        on_point: called with each point.
    """
    sizes, shares = list(dict.fromkeys(sizes)), sorted({float(share) for share in shares})
    if len(sizes) < 2:
        raise WonderlandError("Give at least two sizes of the model; a law with a floor takes three.")
    if not shares or not all(0 < share <= 1 for share in shares):
        raise WonderlandError(f"Shares of the training rows are above 0 and at most 1, not {shares}.")
    if options.get("budget") is not None or options.get("lr") == "auto":
        raise WonderlandError(
            "Trainings of several sizes have a length and a rate that are numbers: leave out budget and lr auto."
        )
    options.setdefault("conformal", "split")  # one validation part for all, where few rows would be validated in folds
    request = Request.of(target=target, **options)
    folder = Path(out) if out is not None else free_folder(source)
    with seeded(request):
        kind, dataset = open_source(source, test, request, request.kind, recorded=False)
        folder.mkdir(parents=True, exist_ok=True)
        kind.remember(dataset, folder, None)  # where encoded data go
        plans = [_plan(kind, dataset, trial_request(request, {setting: size}), size) for size in sizes]
    sizes_of = {plan_parameters(plan) for plan in plans}
    if len(sizes_of) < len(sizes):
        raise WonderlandError(f"Some sizes give models with equally many parameters: does {setting} change the model?")
    can_cut = isinstance(plans[0].parts, Split) and not plans[0].recipe.folds
    points = []
    for size, plan in zip(sizes, plans, strict=True):
        for share in shares if can_cut else [1.0]:
            with seeded(request):
                points.append(_point(folder, plan, trial_request(request, {setting: size}), size, share))
            if on_point:
                on_point(points[-1])
    result = fitted(setting, points)
    result = replace(result, folder=folder)
    write_json(folder / RESULTS, to_json(result, operations))
    write_text(folder / REPORT, render(result, dataset.name, operations))
    return result


def free_folder(source: Any) -> Path:
    """A folder under `scalings/` named after the source: the same command goes on where it was."""
    name = Path(source).stem if isinstance(source, str | Path) else "data"
    return Path("scalings") / name


def _plan(kind: Any, dataset: Any, request: Request, size: Any) -> Plan:
    plan = make_plan(kind, dataset, request, None)
    if is_closed_form(plan.recipe.model) or not isinstance(plan.recipe.model, Spec):
        raise WonderlandError(
            f"The model at size {size} is fitted in one step, without a learning curve: name another with --model."
        )
    torch.set_num_threads(request.training.threads or threads_for(plan))
    resolve_measured(plan, request)
    return plan


def plan_parameters(plan: Plan) -> int:
    """The number of trainable weights, without building them."""
    with torch.device("meta"):
        model = plan.recipe.model.build()  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(model, nn.Module)
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def _point(folder: Path, plan: Plan, request: Request, size: Any, share: float) -> Point:
    """Train one point in a folder of its own, or read what an earlier call has finished."""
    place = folder / POINTS / f"{str(size).replace('/', '-')[:60]}-{share:g}"
    if share < 1:
        assert isinstance(plan.parts, Split)
        plan = replace(plan, parts=replace(plan.parts, train=_subset(plan.parts.train, share, plan.seed)))
    config = make_config(plan, request, torch.get_num_threads()) | {"scaling": {"share": share}}
    with lock(place):
        if (place / "config.json").exists() and read_json(place / "config.json") != config:
            raise WonderlandError(f"{place} holds a training with other options. Choose another folder with --out.")
        write_json(place / "config.json", config)
        stages = Stages(place, plan, config)
        outcome = stages.train_to(plan.recipe.steps)
    batch = plan.examples.first(plan.parts.train)
    each = 3.0 * cost(plan.model(), plan.task.inputs(batch)).flops
    rows = len(plan.parts.train) if isinstance(plan.parts, Split) else 0
    size_of_batch = plan.recipe.batch_size
    curve = [
        (float(row["step"]) * size_of_batch * each, float(row[plan.watch]))
        for row in outcome.rows
        if plan.watch in row and math.isfinite(row[plan.watch])
    ]
    if outcome.best_value is None or not math.isfinite(outcome.best_value) or not curve:
        raise WonderlandError(f"The training at size {size} reached no finite loss: try a lower rate with --lr.")
    seen = outcome.rows[-1]["step"] * size_of_batch
    return Point(size, share, plan_parameters(plan), rows or seen, seen, seen * each, float(outcome.best_value), curve)


def _subset(rows: np.ndarray, share: float, seed: int) -> np.ndarray:
    """A share of the training rows; smaller shares are parts of larger ones."""
    order = np.random.Generator(np.random.Philox(mix(seed, 11))).permutation(len(rows))
    return np.sort(rows[order[: max(2, round(share * len(rows)))]])


def fitted(setting: str, points: Sequence[Point]) -> Scaling:
    """The laws: parameters at the most rows, rows at the most parameters, and the smallest loss for each number of operations."""
    most_rows, largest = max(p.share for p in points), max(p.parameters for p in points)
    across = [point for point in points if point.share == most_rows]
    along = [point for point in points if point.parameters == largest]
    if len(along) >= LEAST:
        data = [(float(point.rows), point.loss) for point in along]
    else:
        per_step = along[-1].operations / along[-1].seen
        data = [(operations / per_step, loss) for operations, loss in front(along[-1].curve)]
    frontier = front([pair for point in points for pair in point.curve])
    per_row = float(np.mean([point.operations / point.seen / point.parameters for point in points]))
    return Scaling(
        setting, list(points), law([(float(p.parameters), p.loss) for p in across]), law(data), law(frontier), per_row
    )


def front(pairs: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Pairs of operations and loss where no cheaper one has a smaller loss."""
    kept: list[tuple[float, float]] = []
    for operations, loss in sorted(pairs):
        if not kept or loss < kept[-1][1]:
            kept.append((operations, loss))
    return kept


def law(pairs: Sequence[tuple[float, float]]) -> PowerLaw | None:
    """The law through pairs of size and loss; None with fewer than three sizes, or losses that are not above 0."""
    if len({size for size, _ in pairs}) < LEAST or min(loss for _, loss in pairs) <= 0:
        return None
    return power_law([size for size, _ in pairs], [loss for _, loss in pairs])


def to_json(result: Scaling, operations: float | None) -> dict[str, Any]:
    """The points and the laws as plain numbers."""
    laws = {name: vars(result)[name] for name in ("by_parameters", "by_rows", "by_operations")}
    best = None if operations is None else result.best(operations)
    return {
        "setting": result.setting,
        "points": [asdict(point) for point in result.points],
        **{name: None if value is None else asdict(value) for name, value in laws.items()},
        "best": None if best is None else {"operations": operations, "parameters": best[0], "rows": best[1]},
    }


def sentence(name: str, symbol: str, law: PowerLaw | None) -> str:
    """A law in a line."""
    if law is None:
        return f"L({symbol}): fewer than {LEAST} sizes of {name} were measured, so no law is fitted."
    low, high = law.interval
    spread = f"exponent from {low:.3f} to {high:.3f} (90 % of bootstrap fits)"
    if high - low < 1e-3 * law.exponent:
        spread = "which so few sizes determine without an interval: give more"
    return f"L({symbol}) = {law.floor:.4g} + {law.factor:.4g} {symbol}^-{law.exponent:.3f}, {spread}"


def sentences(result: Scaling, operations: float | None) -> list[str]:
    """All laws, and the best sizes for a budget."""
    said = [
        sentence("the model", "N", result.by_parameters), sentence("the data", "D", result.by_rows),
        sentence("the computation", "C", result.by_operations),
    ]  # fmt: skip
    if operations is not None:
        best = result.best(operations)
        said.append(
            f"{operations:.3g} operations are best spent on {best[0]:,.0f} parameters and {best[1]:,.0f} rows."
            if best
            else "The best sizes for a budget need laws of model and data that fall."
        )
    return said


def render(result: Scaling, title: str, operations: float | None) -> str:
    """One page: each law drawn through its points, and a table."""
    most_rows, largest = max(p.share for p in result.points), max(p.parameters for p in result.points)
    across = [(float(p.parameters), p.loss) for p in result.points if p.share == most_rows]
    along = [(float(p.rows), p.loss) for p in result.points if p.parameters == largest]
    frontier = front([pair for p in result.points for pair in p.curve])
    figures = [
        page.figure(chart(pairs, fit, f"Loss by {label}", label), escape(text))
        for pairs, fit, label, text in (
            (across, result.by_parameters, "parameters", sentence("the model", "N", result.by_parameters)),
            (along, result.by_rows, "training rows", sentence("the data", "D", result.by_rows)),
            (frontier, result.by_operations, "operations", sentence("the computation", "C", result.by_operations)),
        )
    ]
    rows = [
        [str(p.setting), p.share, p.parameters, p.rows, float(f"{p.operations:.4g}"), float(f"{p.loss:.5g}")]
        for p in result.points
    ]
    table = page.table(
        [result.setting, "share of rows", "parameters", "rows", "operations", "validation loss"], rows, "All trainings"
    )
    said = "".join(page.p(escape(text)) for text in sentences(result, operations)[3:])
    header = f'<header><p class="eyebrow">Wonderland scaling</p><h1>{page.breakable(title)}</h1></header>'
    sections = [("laws", "Laws", "Laws", "".join(figures) + said), ("points", "Trainings", "All trainings", table)]
    return page.frame(f"Scaling: {title}", header, sections)


def chart(pairs: Sequence[tuple[float, float]], fit: PowerLaw | None, title: str, label: str) -> str:
    """Points and law on logarithmic axes."""
    sound = [(x, y) for x, y in pairs if x > 0 and y > 0]
    if len(sound) < 2 or len({x for x, _ in sound}) < 2:
        return svg.empty_chart(title, "Nothing to draw: one size only.")
    low, high = min(x for x, _ in sound), max(x for x, _ in sound)
    ys = [y for _, y in sound]
    y = svg.Scale(min(ys) / 1.05, max(ys) * 1.05, 232, 30, log=True)
    x = svg.Scale(low / 1.1, high * 1.1, svg.gutter(y.ticks()), svg.WIDTH - 14, log=True)
    parts = svg.axes(x, y, label, "validation loss", top=16)
    if fit is not None:
        line = [(size, fit(size)) for size in np.geomspace(low, high, 40).tolist()]
        path = "M" + "L".join(f"{x(a):g} {y(max(b, min(ys) / 1.05)):g}" for a, b in line)
        parts.append(f'<path class="l1" d="{path}"/>')
    parts += [svg.dot(x(a), y(b), "f0", 3, svg.tooltip(f"{label} {compact(a)}: {b:.4g}")) for a, b in sound]
    return svg.chart(parts, 276, title, f"{len(sound)} points on logarithmic axes.")
