"""Export: a run as one file for other programs, which is run and compared with predict before it counts as done."""

import io
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wonderland.core import WonderlandError, nearest, need, write_bytes
from wonderland.ship.onnx_file import check, quiet, to_onnx
from wonderland.ship.program import Program, exported, program
from wonderland.ship.quantizing import int8, loss
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
    run: Any,
    to: str = "onnx",
    out: str | Path | None = None,
    *,
    level: float | None = None,
    quantize: str | None = None,
) -> Export:
    """Write a run for other programs: `to` is "onnx" or "torch"; `quantize="int8"` keeps weights of ONNX files in bytes.

    The file holds preprocessing, model, calibration and conformal sets at `level` (that of the run by default). It is run on
    rows made from the schema of the run, odd ones among them, at three batch sizes; where it differs from `predict` by more
    than 1e-5, nothing is kept and the error says so.
    """
    if to not in TARGETS:
        raise WonderlandError(f"There is no export to {to!r}.{nearest(to, TARGETS)} Known are {', '.join(TARGETS)}.")
    if quantize is not None and (quantize != "int8" or to != "onnx"):
        raise WonderlandError("Quantization is int8, of ONNX files: export --to onnx --quantize int8.")
    return TARGETS[to](run, out, float(run.trust.level) if level is None else check_level(level), quantize)


def _onnx(run: Any, out: str | Path | None, level: float, quantize: str | None) -> Export:
    need("onnxruntime", extra="export", why="to run exported files before they count as done")
    path = Path(out) if out is not None else run.folder / "model.onnx"
    program(run, level)  # says why there is none, before anything else is tried
    source = run.encoder.samples(ROWS)
    content, difference, double = b"", float("inf"), False
    for double in (False, True):
        made = program(run, level, double=double)
        model = to_onnx(exported(made, sizes_of(made)), made, describe(run, level))
        content = model.SerializeToString()
        check(content)
        difference = compare(run, made, onnx_runner(content, made), source, level, double=double)
        if difference <= TOLERANCE or not any(port.type == "float" for port in made.ports):
            break
    agreed(difference)
    notes = ["Numbers are float64 inputs: float32 is too coarse for them."] if double else []
    if quantize is not None:
        exact, size = content, len(content)
        content = int8(exact)
        feed = run.encoder.feed(run.encoder.open(source), double=double)
        lost = loss(onnx_runner(exact, made), onnx_runner(content, made), feed)
        notes.append(f"Quantized from {size:,} to {len(content):,} bytes. {lost}")
    write_bytes(path, content)
    return Export((path,), difference, compared(made), tuple(notes))


def sizes_of(made: Program) -> dict[str, int]:
    """Lengths to trace with, for the free ones of the inputs."""
    names = {size for port in made.ports for size in port.shape if isinstance(size, str)}
    return {name: size for name, size in SIZES.items() if name in names}


def compared(made: Program) -> str:
    """What an export was compared on, in words."""
    return f"{ROWS} rows made from the schema, in batches of {', '.join(map(str, BATCHES[:-1]))} and {BATCHES[-1]}"


def describe(run: Any, level: float) -> dict[str, Any]:
    """The metadata of an exported file."""
    about = {"version": __version__, "task": run.task.name, "level": level, "run": run.folder.name}
    return about | ({} if run.classes is None else {"classes": run.classes})


def onnx_runner(content: bytes, made: Program) -> Callable[..., dict[str, Any]]:
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


def _torch(run: Any, out: str | Path | None, level: float, quantize: str | None) -> Export:
    """A .pt2 file: `torch.export.load(path).module()` answers what the ONNX file does, with texts and classes as numbers."""
    path = Path(out) if out is not None else run.folder / "model.pt2"
    made = program(run, level, double=True)
    graph = exported(made, sizes_of(made))
    runner = torch_runner(graph, made)
    difference = agreed(compare(run, made, runner, run.encoder.samples(ROWS), level, double=True))
    buffer = io.BytesIO()
    about = describe(run, level) | {
        "inputs": [{"name": port.name, "type": port.type, "about": port.about} for port in made.ports],
        "codes": {port.name: dict(port.codes) for port in made.ports if port.type == "string"},
        "outputs": list(made.names),
    }
    with quiet():
        torch.export.save(graph, buffer, extra_files={"wonderland.json": json.dumps(about)})
    write_bytes(path, buffer.getvalue())
    note = "Texts are given as codes, and the class is a number: wonderland.json in the file has both tables."
    return Export((path,), difference, compared(made), (note,))


def torch_runner(graph: torch.export.ExportedProgram, made: Program) -> Callable[..., dict[str, Any]]:
    """A function from feeds to named outputs, by torch."""
    module = graph.module()

    def run(feed: dict[str, np.ndarray]) -> dict[str, Any]:
        values = [
            torch.tensor([port.codes.get(text, 0) for text in feed[port.name]], dtype=torch.int64)
            if port.type == "string"
            else torch.from_numpy(np.ascontiguousarray(feed[port.name]))
            for port in made.ports
        ]
        with torch.no_grad():
            outputs = dict(zip(made.names, (value.numpy() for value in module(*values)), strict=True))
        if made.classes is not None:
            outputs["prediction"] = np.array(made.classes, object)[outputs["prediction"]]
        return outputs

    return run


def agreed(difference: float) -> float:
    """The difference, if it is small enough."""
    if difference > TOLERANCE:
        raise WonderlandError(
            f"The exported model differs from predict by {difference:.1e}, more than {TOLERANCE:g}: it was not written."
        )
    return difference


TARGETS: dict[str, Callable[[Any, Any, float, str | None], Export]] = {"onnx": _onnx, "torch": _torch}
