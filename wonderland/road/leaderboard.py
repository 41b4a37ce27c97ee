"""The stage of the leaderboard: the kind's simple methods on the test rows of a run; values in leaderboard.json, times in times.jsonl."""

import json
import time
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, disk_trouble, read_json, sha256, write_json
from wonderland.core.schema import Schema, entries, items, number, optional, text, values
from wonderland.road.plan import Plan
from wonderland.tasks.leaderboard import OURS
from wonderland.train.records import read_records

FILE = "leaderboard.json"
_GAP = entries({"value": number(), "low": number(), "high": number()})
SCHEMA: Schema = entries(
    {
        "inputs": values(text),
        "rows": items(
            entries({"name": text, "metrics": values(optional(number()))}, {"differences": values(_GAP)}),
            least=1,
            most=100,
        ),
        "sentence": text,
    }
)


def leaderboard(folder: Path, plan: Plan, run: Any) -> None:
    """Measure the methods and write the leaderboard, unless it was made from the current trust.json."""
    inputs = {"trust.json": sha256(folder / "trust.json")}
    if (stored := read_leaderboard(folder)) is not None and stored["inputs"] == inputs:
        return
    methods = plan.kind.baselines(plan)
    if not methods:
        return
    view = plan.view(run.model, "test")
    ours, truth = plan.task.point(view, run.trust), plan.task.truth(view)
    rows, times = [plan.task.leaderboard_row(OURS, ours, None, truth)], []
    for method in methods:
        began = time.perf_counter()
        predicted = method.predict()
        times.append({"baseline": method.name, "seconds": round(time.perf_counter() - began, 3)})
        rows.append(plan.task.leaderboard_row(method.name, predicted, ours, truth))
    say = plan.task.leaderboard_sentence(rows, view.count)
    _write_times(folder / "times.jsonl", times)
    write_json(folder / FILE, {"inputs": inputs, "rows": rows, "sentence": say})


def read_leaderboard(folder: Path) -> dict[str, Any] | None:
    """The leaderboard of a run; None if there is none, or it is damaged."""
    try:
        stored = read_json(folder / FILE)
    except WonderlandError:
        return None
    return stored if SCHEMA(stored) is None else None


def seconds_of(folder: Path) -> dict[str, float]:
    """The seconds that each method took when it was measured last."""
    taken = {}
    for row in read_records(folder / "times.jsonl"):
        if (
            isinstance(row, dict)
            and isinstance(row.get("baseline"), str)
            and isinstance(row.get("seconds"), float | int)
        ):
            taken[row["baseline"]] = float(row["seconds"])
    return taken


def _write_times(path: Path, times: list[dict[str, Any]]) -> None:
    try:
        with path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in times)
    except OSError as error:
        raise disk_trouble(error, path) from error
