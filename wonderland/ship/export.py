"""Export: a run as one file for other programs, which is run and compared with predict before it counts as done."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, nearest, need, write_bytes
from wonderland.ship.onnx_file import check, to_onnx
from wonderland.ship.program import Program, exported, program
from wonderland.trust import check_level
from wonderland.version import __version__

TOLERANCE = 1e-5
ROWS = 100
BATCHES = (1, 7, ROWS)
SIZES = {"rows": 3, "height": 40, "width": 48, "tokens": 16}


@dataclass(frozen=True)
class Export:
    """A finished export: the files, the largest difference from predict, and what it was compared on."""

    files: tuple[Path, ...]
    difference: float
    compared: str
    notes: tuple[str, ...] = ()


def export(
    run: Any, to: str = "onnx", out: str | Path | None = None, *, level: float | None = None, quantize: str | None = None
) -> Export:
    """Write a run for other programs: `to` is "onnx", "torch" or "huggingface".

    The file holds preprocessing, model, calibration and conformal sets at `level` (that of the run by default). It is run on
    rows made from the schema of the run, odd ones among them, at three batch sizes; where it differs from `predict` by more
    than 1e-5, nothing is kept and the error says so.
    """
    if to not in TARGETS:
        raise WonderlandError(f"There is no export to {to!r}.{nearest(to, TARGETS)} Known are {', '.join(TARGETS)}.")
    if quantize is not None and (quantize != "int8" or to != "onnx"):
        raise WonderlandError("Quantization is int8, of ONNX files: export --to onnx --quantize int8.")
    level = run.trust.level if level is None else check_level(level)
    return TARGETS[to](run, out, level, quantize)


def _onnx(run: Any, out: str | Path | None, level: float, quantize: str | None) -> Export:
    need("onnxruntime", extra="export", why="to run exported files before they count as done")
    path = Path(out) if out is not None else run.folder / "model.onnx"
    source = run.encoder.samples(ROWS)
    content, difference, double = b"", float("inf"), False
    for double in (False, True):
        made = program(run, level, double=double)
        model = to_onnx(exported(made, _sizes(made)), made, describe(run, level))
        content = model.SerializeToString()
        check(content)
        difference = compare(run, made, onnx_runner(content, made), source, level, double=double)
        if difference <= TOLERANCE or not any(port.type == "float" for port in made.ports):
            break
    if difference > TOLERANCE:
        raise WonderlandError(
            f"The exported model differs from predict by {difference:.1e}, more than {TOLERANCE:g}: it was not written."
        )
    notes = ("Numbers are float64 inputs: float32 is too coarse for them.",) if double else ()
    write_bytes(path, content)
    return Export((path,), difference, compared(made), notes)


def _sizes(made: Program) -> dict[str, int]:
    names = {size for port in made.ports for size in port.shape if isinstance(size, str)}
    return {name: size for name, size in SIZES.items() if name in names}


def compared(made: Program) -> str:
    """What an export was compared on, in words."""
    return f"{ROWS} rows made from the schema, in batches of {', '.join(map(str, BATCHES[:-1]))} and {BATCHES[-1]}"


def describe(run: Any, level: float) -> dict[str, Any]:
    """The metadata of an exported file."""
    about = {"version": __version__, "task": run.task.name, "level": level, "run": run.folder.name}
    return about | ({} if run.classes is None else {"classes": run.classes})


def onnx_runner(content: bytes, made: Program) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """A function from feeds to named outputs, by ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    return lambda feed: dict(zip(made.names, session.run(None, feed), strict=True))


def compare(run: Any, made: Program, runner: Callable, source: Any, level: float, *, double: bool = False) -> float:
    """The largest difference between `predict` and an exported program on a source, over the batch sizes."""
    expected = run.predict(source, level=level)
    feed = run.encoder.feed(run.encoder.open(source), double=double)
    largest = 0.0
    for size in BATCHES:
        pieces = [runner({n: v[i : i + size] for n, v in feed.items()}) for i in range(0, len(expected), size)]
        joined = {name: np.concatenate([piece[name] for piece in pieces]) for name in made.names}
        difference = run.task.difference(expected, joined)
        largest = max(largest, math.inf if math.isnan(difference) else difference)
    return largest


TARGETS: dict[str, Callable[[Any, Any, float, str | None], Export]] = {"onnx": _onnx}
