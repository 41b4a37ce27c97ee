"""What a training will take on this machine, before it is begun: parameters, operations, time, memory, and what limits each layer."""

import inspect
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.batch import Batch
from wonderland.road.fitting import is_source, open_source, recorded_source, seeded
from wonderland.road.parts import check_memory, is_closed_form, parse_model
from wonderland.road.plan import Plan, make_plan, rebuild, resolve_measured, threads_for, trial_state, try_model
from wonderland.road.request import Request
from wonderland.ship import read_config
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.loop import stream
from wonderland.train.state import State
from wonderland.train.supervised import Supervised, adamw
from wonderland.understand import Bound, Cost, Machine, cost, measure_machine, roofline
from wonderland.understand.precisions import Precision, precisions
from wonderland.understand.step_cost import StepCost, clock, parts_of, peak_bytes, reset_peak, step_cost

ROWS, IMAGE, LENGTH = 32, 64, 128  # a batch of made-up inputs where a model is named alone


@dataclass(frozen=True)
class CostSheet:
    """The prediction for one model: `steps` and `evaluations` are None where there is no plan of a training."""

    name: str
    about: str
    cost: Cost
    machine: Machine
    bounds: list[Bound]
    step: StepCost
    start_seconds: float = 0.0
    batch_seconds: float = 0.0
    evaluation_seconds: float = 0.0
    steps: int | None = None
    evaluations: int = 0
    threads: int = 1
    precisions: list[Precision] = field(default_factory=list)

    @property
    def training_seconds(self) -> float | None:
        """Seconds of all steps and evaluations; training may stop earlier, or go on, where the recipe says so."""
        if self.steps is None:
            return None
        return (
            self.start_seconds
            + self.steps * (self.step.seconds + self.batch_seconds)
            + self.evaluations * self.evaluation_seconds
        )

    @property
    def bound_seconds(self) -> float:
        """The shortest time of a step under the roofline: forward, and twice that for the backward pass."""
        return 3 * sum(bound.seconds for bound in self.bounds)

    def to_json(self) -> dict[str, Any]:
        """As plain numbers, for JSON."""
        return asdict(self) | {
            "cost": self.cost.to_json(), "training_seconds": self.training_seconds, "bound_seconds": self.bound_seconds,
        }  # fmt: skip


def cost_of(
    target: Any,
    target_column: str | None = None,
    *,
    precision: tuple[str, ...] = (),
    test: Any = None,
    shapes: Any = (),
    **options: Any,
) -> CostSheet:
    """The cost sheet of a run folder, of the recipe for some data, or of a model by name or as a call.

    >>> sheet = cost_of("LeNet(classes=10, channels=1)")
    >>> sheet.cost.parameters, sheet.step.seconds > 0
    (61706, True)
    """
    if isinstance(target, str | Path) and (Path(target) / "config.json").is_file():
        return _of_run(Path(target), precision)
    if isinstance(target, str) and (spec := _model_named(target)) is not None:
        return _of_model(spec, shapes, options.get("batch_size"), precision)
    request = Request.of(target=target_column, **options)
    with seeded(request), tempfile.TemporaryDirectory() as folder:
        kind, dataset = open_source(target, test, request, request.kind, recorded=False)
        kind.remember(dataset, Path(folder), None)  # where encoded data go
        plan = make_plan(kind, dataset, request, None)
        try_model(plan, request)
        torch.set_num_threads(request.training.threads or threads_for(plan))
        resolve_measured(plan, request)
        return _of_plan(plan, precision)


def _of_run(folder: Path, precision: tuple[str, ...]) -> CostSheet:
    config = read_config(folder)
    request, origin = Request.from_json(config.get("request")), config["source"]["origin"]
    test = request.training.test
    with seeded(request):
        kind, dataset = open_source(
            recorded_source(origin, folder),
            recorded_source(origin.get("test", {}), folder) if is_source(test) else None,
            request, config["source"]["kind"], recorded=True,
        )  # fmt: skip
        kind.remember(dataset, folder, config)
        torch.set_num_threads(config["threads"])
        return _of_plan(rebuild(config, dataset, folder, None), precision)


def _of_plan(plan: Plan, precision: tuple[str, ...]) -> CostSheet:
    recipe = plan.recipe
    name = recipe.model if isinstance(recipe.model, str) else recipe.model.name
    if is_closed_form(recipe.model):
        raise WonderlandError(f"{name} is fitted in one step, without batches: there is no training step to predict.")
    start = clock()  # once: building the model, encoding the data, the first step
    learner, batches = plan.learner(), plan.batches()
    state = trial_state(plan)
    if not isinstance(state, State):
        raise WonderlandError(f"{recipe.learner.name} has no steps on batches whose time could be predicted.")
    stream_of_batches = stream(batches, 0, 4)
    batch = Batch.of(next(stream_of_batches))
    began = clock()
    later = sum(1 for _ in stream_of_batches)
    batch_seconds = (clock() - began) / max(1, later)

    def step(part: Any) -> None:
        learner.step(state, part)

    step(parts_of(batch)[0][1])
    start = clock() - start
    measured = step_cost(step, parts_of(batch), len(batch))
    reset_peak()
    began = clock()
    plan.evaluate(state)
    evaluation = clock() - began
    measured = replace(measured, peak_bytes=max(measured.peak_bytes + _kept_bytes(state), _saving_peak(state)))
    example = plan.examples.first(plan.parts.train)
    inputs = plan.task.inputs(example)
    model = plan.model()
    counted, machine = cost(model, inputs), measure_machine()
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return CostSheet(
        str(name), f"{len(batch):,} rows a step, {recipe.steps:,} steps at most", counted, machine,
        roofline(counted, machine, rows=len(batch)), measured, start, batch_seconds, evaluation, recipe.steps,
        -(-recipe.steps // max(1, recipe.evaluate_every)), torch.get_num_threads(),
        precisions(model, inputs, list(precision)) if precision else [],
    )  # fmt: skip


def _kept_bytes(state: State) -> int:
    """Bytes of the best weights, which training keeps beside the present ones."""
    return sum(
        t.numel() * t.element_size() for module in state.modules().values() for t in module.state_dict().values()
    )


def _saving_peak(state: State) -> float:
    """The peak of memory while a checkpoint is written with the best weights in it, after an evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        kept = state.snapshot()
        Checkpoints(folder).save(0, {"state": state.state_dict(), "best": kept})
        return peak_bytes()


def _model_named(text: str) -> Spec | None:
    """The model of a name or a call; None for what is a file or a bundled set."""
    if Path(text).exists() and "(" not in text:
        return None
    try:
        return parse_model(text)
    except WonderlandError:
        if "(" in text or text[:1].isupper():
            raise
        return None


def _of_model(spec: Spec, shapes: Any, batch_size: int | None, precision: tuple[str, ...]) -> CostSheet:
    check_memory(spec)
    torch.manual_seed(0)
    model = spec.build()
    if not isinstance(model, nn.Module):
        raise WonderlandError(f"{spec.name} is not a model.")
    inputs = _made_up(spec, model, shapes, batch_size or ROWS)
    rows = len(inputs[0])
    state = (
        State(model=model, optimizer=adamw(model, lr=1e-6))
        if any(p.requires_grad for p in model.parameters())
        else None
    )
    if state is None:
        raise WonderlandError(f"{spec.name} has nothing to learn: it has no trainable parameters.")

    def loss(net: nn.Module, batch: Batch) -> torch.Tensor:
        from torch.utils._pytree import tree_leaves

        output = net(*batch)
        return sum((leaf.float().square().mean() for leaf in tree_leaves(output) if isinstance(leaf, torch.Tensor)
                    and leaf.requires_grad), torch.zeros(()))  # fmt: skip

    learn = Supervised(loss, steps=10**9, lr=1e-6)
    batch = Batch({str(i): tensor for i, tensor in enumerate(inputs)})
    threads = torch.get_num_threads()
    measured = step_cost(lambda part: learn(state, part), parts_of(batch), rows)
    one = tuple(tensor[:1] for tensor in inputs)
    counted, machine = cost(model, one), measure_machine()
    shown = ", ".join(" x ".join(map(str, tensor.shape)) for tensor in inputs)
    return CostSheet(
        spec.name, f"inputs of {shown}, made up; give others with --shapes", counted, machine,
        roofline(counted, machine, rows=rows), measured, threads=threads,
        precisions=precisions(model, inputs, list(precision)) if precision else [],
    )  # fmt: skip


def _made_up(spec: Spec, model: nn.Module, shapes: Any, rows: int) -> tuple[torch.Tensor, ...]:
    """Inputs that a model takes: those of the shapes that were given, or of the usual ones that run."""
    generator = torch.Generator().manual_seed(0)

    def drawn(shape: list[int], vocab: int) -> torch.Tensor:
        return torch.randint(vocab, shape, generator=generator) if vocab else torch.randn(shape, generator=generator)

    if shapes:
        return _tried(spec, model, tuple(drawn(list(shape), vocab) for shape, vocab in shapes))
    known = {name: p.default for name, p in inspect.signature(spec.part).parameters.items()} | dict(spec.arguments)
    examples: list[tuple[torch.Tensor, ...]] = []
    for name in ("features", "inputs", "in_features"):
        if isinstance(known.get(name), int):
            examples.append((drawn([rows, known[name]], 0),))
    vocab = known.get("vocab")
    if isinstance(vocab, int):
        examples.append((drawn([rows, LENGTH], vocab),))
    channels = known.get("channels")
    if isinstance(channels, int):
        examples += [(drawn([rows, channels, size, size], 0),) for size in (IMAGE, 28, 224)]
        examples.append((drawn([rows, channels, LENGTH], 0),))
    for inputs in examples:
        try:
            return _tried(spec, model, inputs)
        except WonderlandError:
            continue
    raise WonderlandError(
        f"The inputs of {spec.name} are not known: give their shapes, such as --shapes 32,3,64,64 for images or 32,128:5000 for tokens below 5000."
    )


def _tried(spec: Spec, model: nn.Module, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    model.eval()
    try:
        with torch.no_grad():
            model(*(tensor[:2] for tensor in inputs))
    except Exception as error:
        first = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
        shown = " and ".join("x".join(map(str, tensor.shape)) for tensor in inputs)
        raise WonderlandError(
            f"{spec.name} does not take inputs of shape {shown} ({first}): give others with --shapes."
        ) from error
    return inputs


def limits(sheet: CostSheet) -> Mapping[str, float]:
    """The share of the roofline's time in layers that are limited by arithmetic, memory or latency."""
    total = sum(bound.seconds for bound in sheet.bounds) or 1.0
    shares: dict[str, float] = {}
    for bound in sheet.bounds:
        shares[bound.limit] = shares.get(bound.limit, 0.0) + bound.seconds / total
    return dict(sorted(shares.items(), key=lambda item: -item[1]))
