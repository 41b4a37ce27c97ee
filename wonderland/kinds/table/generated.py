"""Tables whose distribution is learned: reading them without a target, the recipe, and how samples compare in the report."""

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.columns import Column, read_column
from wonderland.data.dataset import GENERATE, Finding, stop_if_strict
from wonderland.data.source import Contents
from wonderland.data.split import read_assigned
from wonderland.kinds.kind import task_spec
from wonderland.kinds.table.sampled_rows import SampledRows
from wonderland.kinds.table.table import (
    Table,
    check_finite,
    fingerprint_of,
    leave_out,
    names_of_groups,
    note_duplicates,
    note_repairs,
    read_groups,
    read_times,
    unknown_column,
)
from wonderland.models.generative import FlowMatching, VelocityNet, memorised
from wonderland.optim import FusedAdamW
from wonderland.tasks import Generation
from wonderland.tasks.generation import drawn
from wonderland.train.learner import GradientDescent

GENERATORS = ("FlowMatching", "Diffusion", "VAE", "RealNVP")
MOST_CATEGORIES = 500  # of a column that is generated
SHOWN, COMPARED, MOST_COLUMNS = 12, 2000, 30


def open_rows(contents: Contents, options: Any) -> Table:
    """All columns of a table that can be generated; none of them is a target."""
    frame, findings = contents.frame, list(contents.findings)
    assert frame is not None
    if options.target is not None or options.blend:
        raise WonderlandError("A table to generate has no target: leave target and blend out.")
    names = list(frame.columns)
    for option in ("group", "time", "split"):
        if (column := vars(options)[option]) is not None and column not in names:
            raise unknown_column(option, column, names)
    for column in (*options.keep, *options.drop):
        if column not in names:
            raise unknown_column("keep or drop", column, names)
    columns = {name: read_column(name, pd.Series(frame[name])) for name in names}
    check_finite(columns.values())
    note_duplicates(columns, findings)
    dropped = (*options.drop, *([] if options.split is None else [options.split]))
    reasons = leave_out(columns, "", options.group, options.time, options.keep, dropped, findings)
    reasons.pop("")
    reasons |= not_generated(columns, reasons, findings)
    features = [column for column in columns.values() if column.name not in reasons]
    if not features:
        raise WonderlandError(f"{contents.name} has no column that can be generated: none varies.")
    note_repairs(features, findings)
    stop_if_strict(findings, options.strict)
    table = Table(
        contents.name,
        features,
        task=GENERATE,
        y=np.zeros(len(frame), np.int64),
        left_out=reasons,
        findings=findings,
        fingerprint=fingerprint_of(list(columns.values())),
        origin=contents.origin,
        groups=None if options.group is None else read_groups(columns[options.group]),
        times=None if options.time is None else read_times(columns[options.time]),
        time=options.time,
    )
    if options.group is not None:
        table.group, table.group_names = options.group, names_of_groups(columns[options.group])
    if options.split is not None:
        table.assigned = read_assigned(pd.Series(frame[options.split]), options.split)
    return table


def not_generated(columns: dict[str, Column], reasons: dict[str, str], findings: list[Finding]) -> dict[str, str]:
    """Columns that no sample can have: free text, and categories that are too many."""
    left_out = {}
    for name, column in columns.items():
        if name in reasons:
            continue
        if column.kind == "text" or (column.kind == "category" and column.distinct > MOST_CATEGORIES):
            left_out[name] = "text" if column.kind == "text" else "made of too many categories"
            content = "free text" if column.kind == "text" else f"{column.distinct:,} categories"
            findings.append(
                Finding(
                    "text",
                    name,
                    column.distinct,
                    f"Column {name!r} holds {content}, which is not generated, and is left out.",
                )
            )
    return left_out


def recipe_of(encoder: SampledRows, task: Generation, rows: int) -> Recipe:
    """Flow matching on vectors of rows, which sees two million of them."""
    batch = max(1, min(256, rows))
    steps = 2_000_000 // 256
    hidden = 256 if encoder.width <= 200 else 512
    return Recipe(
        model=FlowMatching.spec(
            shape=[encoder.width], net=VelocityNet.spec(features=encoder.width, hidden=hidden, depth=3), steps=50
        ),
        task=task_spec(task),
        learner=GradientDescent.spec(),
        optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.99]),
        schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
        steps=steps,
        batch_size=batch,
        lr=2e-3,
        average=0.998,
        evaluate_every=steps // 20,
    )


def named_recipe(recipe: Recipe) -> Recipe:
    """Other models than the default keep a moving average of their weights too."""
    return replace(recipe, average=0.998)


def report_facts(run: Any, plan: Any) -> dict[str, Any]:
    """Rows drawn from the model, the distance of each column from unseen rows, and copies of training rows."""
    task = plan.task
    x, _ = task.rows(plan.view(run.model, "train"), COMPARED)
    unseen, _ = task.rows(plan.view(run.model, "test"), COMPARED)
    fake = drawn(run.model, max(len(unseen), SHOWN), None).flatten(1)
    share, _ = memorised(fake, x, unseen)
    samples, real, train = (run.encoder.frame(rows) for rows in (fake, unseen, x))
    rows = [{name: shown(value) for name, value in row.items()} for row in samples.head(SHOWN).to_dict("records")]
    distances = sorted(((distance(samples[name], real[name]), name) for name in samples.columns), reverse=True)
    known = set(map(tuple, train.astype(str).to_numpy()))
    copied = float(np.mean([tuple(row) in known for row in samples.astype(str).to_numpy()]))
    facts = {
        "rows": [dict(itertools.islice(row.items(), MOST_COLUMNS)) for row in rows],
        "memorised": share,
        "exact": copied,
        "marginals": [{"name": name, "value": value} for value, name in distances[:MOST_COLUMNS]],
    }
    return {"generated": facts | correlations(samples, real)}


def distance(a: pd.Series, b: pd.Series) -> float:
    """The largest difference of two distribution functions, or half the sum of differences of shares of categories."""
    if a.dtype == object or b.dtype == object:
        shares = [values.fillna("(missing)").value_counts(normalize=True) for values in (a, b)]
        return float(shares[0].subtract(shares[1], fill_value=0).abs().sum() / 2)
    first, second = (np.sort(values.dropna().to_numpy().astype(np.float64)) for values in (a, b))
    if not len(first) or not len(second):
        return float(len(first) != len(second))
    at = np.concatenate([first, second])
    return float(
        np.abs(
            np.searchsorted(first, at, "right") / len(first) - np.searchsorted(second, at, "right") / len(second)
        ).max()
    )


def correlations(samples: pd.DataFrame, real: pd.DataFrame) -> dict[str, float]:
    """How much rank correlations of numbers differ on average; nothing with fewer than two columns of numbers."""
    names = [
        name
        for name in samples.columns
        if samples.dtypes[name].kind in "if" and len(np.unique(real[name].to_numpy(np.float64))) > 1
    ]
    if len(names) < 2:
        return {}
    a, b = (np.nan_to_num(frame.loc[:, names].corr(method="spearman").to_numpy()) for frame in (samples, real))
    above = np.triu_indices(len(names), 1)
    return {"correlations": float(np.abs(a[above] - b[above]).mean())}


def shown(value: Any) -> Any:
    """A cell for the report."""
    if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)):
        return ""
    return str(value).removesuffix(" 00:00:00") if isinstance(value, pd.Timestamp) else value
