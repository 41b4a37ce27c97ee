"""Exported programs are run on the same inputs as `predict`, and the answers are compared."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from wonderland.core import WonderlandError
from wonderland.data.ports import Feed
from wonderland.ship.program import Program

TOLERANCE = 1e-5
Runner = Callable[[Feed], dict[str, Any]]


def onnx_runner(content: bytes, names: tuple[str, ...]) -> Runner:
    """A function from feeds to named outputs, by ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # its errors have no common type
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise WonderlandError(f"ONNX Runtime cannot run the exported file, so it was not written: {reason}") from error
    return lambda feed: dict(zip(names, session.run(None, dict(feed)), strict=True))


def torch_runner(graph: torch.export.ExportedProgram, exported: Program) -> Runner:
    """A function from feeds to named outputs, by torch."""
    module = graph.module()

    def run(feed: Feed) -> dict[str, Any]:
        with torch.no_grad():
            outputs = dict(
                zip(exported.names, (value.numpy() for value in module(*tensors(exported, feed))), strict=True)
            )
        if exported.classes is not None:
            outputs["prediction"] = np.array(exported.classes, object)[outputs["prediction"]]
        return outputs

    return run


def tensors(exported: Program, feed: Feed) -> list[torch.Tensor]:
    """The inputs of a torch program from a feed: texts as their codes."""
    return [
        torch.tensor([port.codes.get(text, 0) for text in feed[port.name]], dtype=torch.int64)
        if port.type == "string"
        else torch.from_numpy(np.ascontiguousarray(feed[port.name]))
        for port in exported.ports
    ]


def compare(run: Any, exported: Program, runner: Runner, level: float, *, double: bool = False) -> float:
    """The largest difference between `predict` and an exported program, over all trials and batch sizes."""
    largest = 0.0
    for trial in run.encoder.trials(double=double):
        expected = run.task.expected(run, trial.source, level)
        for feeds in trial.divisions:
            joined = joined_outputs(runner, exported.names, feeds)
            difference = run.task.difference(expected, joined)
            if getattr(exported.answers, "says_more", False):
                difference = max(difference, program_difference(exported, feeds, joined))
            largest = max(largest, math.inf if math.isnan(difference) else difference)
    return largest


def program_difference(exported: Program, feeds: Any, joined: dict[str, Any]) -> float:
    """The largest difference in probabilities between the program in torch, as it is, and the outputs of the exported one."""
    if "probabilities" not in exported.names:
        return 0.0
    place = exported.names.index("probabilities")
    with torch.no_grad():
        expected = np.concatenate([exported(*tensors(exported, feed))[place].numpy() for feed in feeds])
    return float(np.abs(expected - joined["probabilities"]).max(initial=0.0))


def joined_outputs(runner: Runner, names: tuple[str, ...], feeds: Any) -> dict[str, Any]:
    """The outputs for several feeds, one after the other; where their lengths differ, as a list of rows."""
    pieces = [runner(feed) for feed in feeds]
    joined: dict[str, Any] = {}
    for name in names:
        values = [piece[name] for piece in pieces]
        alike = len({value.shape[1:] for value in values}) == 1
        joined[name] = np.concatenate(values) if alike else [row for value in values for row in value]
    return joined


def agreed(difference: float) -> float:
    """The difference, if it is small enough."""
    if difference > TOLERANCE:
        raise WonderlandError(
            f"The exported model differs from predict by {difference:.1e}, more than {TOLERANCE:g}: it was not written."
        )
    return difference
