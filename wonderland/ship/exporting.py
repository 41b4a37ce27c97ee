"""Export: a run as one file for other programs, which is run and compared with predict before it counts as done."""

import contextlib
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wonderland.core import WonderlandError, nearest, need, write_bytes
from wonderland.ship.comparing import TOLERANCE, agreed, compare, joined_outputs, onnx_runner, torch_runner
from wonderland.ship.huggingface import write_folder
from wonderland.ship.onnx_file import check, quiet, to_onnx
from wonderland.ship.program import Program, exported, program
from wonderland.ship.quantizing import int8, loss
from wonderland.ship.stepping import StepProgram, can_step, check_steps
from wonderland.trust import check_level
from wonderland.version import __version__

SIZES = {"rows": 3, "height": 40, "width": 48, "tokens": 16}
FIRST, NEXT = 5, 4  # lengths to trace with where none is given, all different


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
    """Write a run for other programs: `to` is "onnx", "torch" or "huggingface"; `quantize="int8"` keeps weights of ONNX files in bytes.

    The file holds preprocessing, model, calibration and conformal sets at `level` (that of the run by default). It is run on
    inputs made from the schema of the run, odd ones among them, at several batch sizes; where it differs from `predict` by more
    than 1e-5, nothing is kept and the error says so.
    """
    if to not in TARGETS:
        raise WonderlandError(f"There is no export to {to!r}.{nearest(to, TARGETS)} Known are {', '.join(TARGETS)}.")
    if quantize is not None and (quantize != "int8" or to != "onnx"):
        raise WonderlandError("Quantization is int8, of ONNX files: export --to onnx --quantize int8.")
    level = float(run.trust.level) if level is None else check_level(level)
    with run.guarded():
        return TARGETS[to](run, out, level, quantize)


def _onnx(run: Any, out: str | Path | None, level: float, quantize: str | None) -> Export:
    need("onnxruntime", extra="export", why="to run exported files before they count as done")
    path = Path(out) if out is not None else run.folder / "model.onnx"
    program(run, level)  # says why there is none, before anything else is tried
    content, difference, double = b"", float("inf"), False
    for double in (False, True):
        exported_program = program(run, level, double=double)
        content = onnx_bytes(exported_program, describe(run, level))
        difference = compare(run, exported_program, onnx_runner(content, exported_program.names), level, double=double)
        if difference <= TOLERANCE or not any(port.type == "float" for port in exported_program.ports):
            break
    agreed(difference)
    notes = ["Numbers are float64 inputs: float32 is too coarse for them."] if double else []
    if quantize is not None:
        exact, size = content, len(content)
        content = int8(exact)
        notes.append(
            f"Quantized from {size:,} to {len(content):,} bytes. {lost(run, exported_program, exact, content, double)}"
        )
    more = []
    if can_step(run):
        stepping, worst = step_file(run, quantize)
        more.append(path.with_suffix(f".step{path.suffix}"))
        notes.append(
            f"{more[0].name} continues after a state, token by token; largest difference in probabilities: {worst:.1e}."
        )
        difference = max(difference, worst)
        write_bytes(more[0], stepping)
    write_bytes(path, content)
    return Export((path, *more, *write_beside(run, path)), difference, run.encoder.trial_words, tuple(notes))


def step_file(run: Any, quantize: str | None) -> tuple[bytes, float]:
    """The graph of a language model that continues after a state, and its largest difference from whole sequences."""
    step_program = StepProgram(run.model).eval()
    content = onnx_bytes(step_program, describe(run, run.trust.level) | {"state": step_program.describe()})
    worst = check_steps(step_program, onnx_runner(content, step_program.names), run.task.vocab)
    return (int8(content) if quantize else content), worst


def write_beside(run: Any, path: Path) -> list[Path]:
    """Write what a program needs beside the exported model, in its folder."""
    files = run.encoder.beside()
    for name, content in files.items():
        write_bytes(path.parent / name, content)
    return [path.parent / name for name in files]


def onnx_bytes(exported_program: Program | StepProgram, about: dict[str, Any]) -> bytes:
    """A program as a checked ONNX file."""
    with said():
        content = to_onnx(
            exported(exported_program, sizes_of(exported_program)), exported_program, about
        ).SerializeToString()
    check(content)
    return content


@contextlib.contextmanager
def said() -> Iterator[None]:
    """What torch's exporter cannot write, as a sentence."""
    try:
        yield
    except WonderlandError:
        raise
    except Exception as error:  # its errors have no common type
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
        raise WonderlandError(
            f"This model cannot be exported: torch's exporter cannot write a part of it ({reason})."
        ) from error


def lost(run: Any, exported_program: Program, exact: bytes, coarse: bytes, double: bool) -> str:
    """What answers lose by quantization, on the inputs of the comparison, in a sentence."""
    feeds = [feed for trial in run.encoder.trials(double=double) for feed in trial.divisions[-1]]
    runners = (onnx_runner(content, exported_program.names) for content in (exact, coarse))
    return loss(*(joined_outputs(runner, exported_program.names, feeds) for runner in runners))


def sizes_of(exported_program: Program | StepProgram) -> dict[str, int]:
    """Lengths to trace with, for the free ones of the inputs."""
    names = dict.fromkeys(size for port in exported_program.ports for size in port.shape if isinstance(size, str))
    return {name: SIZES.get(name, FIRST + NEXT * i) for i, name in enumerate(names)}


def describe(run: Any, level: float) -> dict[str, Any]:
    """The metadata of an exported file."""
    about = {"version": __version__, "task": run.task.name, "level": level, "run": run.folder.name}
    return about | ({} if run.classes is None else {"classes": run.classes})


def _torch(run: Any, out: str | Path | None, level: float, quantize: str | None) -> Export:
    """A .pt2 file: `torch.export.load(path).module()` answers what the ONNX file does, with texts and classes as numbers."""
    path = Path(out) if out is not None else run.folder / "model.pt2"
    exported_program = program(run, level, double=True)
    with said():
        graph = exported(exported_program, sizes_of(exported_program))
    difference = agreed(compare(run, exported_program, torch_runner(graph, exported_program), level, double=True))
    for name, value in graph.constants.items():  # the archive takes no views of other arrays
        if isinstance(value, torch.Tensor):
            graph.constants[name] = value.detach().clone(memory_format=torch.contiguous_format)
    buffer = io.BytesIO()
    about = describe(run, level) | {
        "inputs": [{"name": port.name, "type": port.type, "about": port.about} for port in exported_program.ports],
        "codes": {port.name: dict(port.codes) for port in exported_program.ports if port.type == "string"},
        "outputs": list(exported_program.names),
    }
    with quiet():
        torch.export.save(graph, buffer, extra_files={"wonderland.json": json.dumps(about)})
    write_bytes(path, buffer.getvalue())
    note = "Texts are given as codes, and the class is a number: wonderland.json in the file has both tables."
    coded = exported_program.classes is not None or any(port.type == "string" for port in exported_program.ports)
    return Export((path, *write_beside(run, path)), difference, run.encoder.trial_words, (note,) if coded else ())


def _huggingface(run: Any, out: str | Path | None, level: float, quantize: str | None) -> Export:
    """A folder that `from_pretrained` of transformers loads: the network alone, without calibration and sets."""
    folder = Path(out) if out is not None else run.folder / "huggingface"
    difference = write_folder(run, folder)
    note = "The folder holds the network alone: calibration and sets are in the run and in its ONNX file."
    return Export(
        (folder,), difference, "tokens of three lengths, in batches of 1, 2 and 5, loaded from the folder", (note,)
    )


TARGETS: dict[str, Callable[[Any, Any, float, str | None], Export]] = {
    "onnx": _onnx,
    "torch": _torch,
    "huggingface": _huggingface,
}
