"""The batch itself: features of very different or large scale, targets of large scale, equal examples, a target among the features."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Value
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, TracedOp, by_unit, is_finite, rms, to_double

MAX_RATIO = 100.0  # between the scales of two features that one layer reads
MIN_LARGE = 10.0  # RMS of the larger one; below it the small features may simply be rare
MAX_SCALE = 30.0  # RMS of all inputs, or standard deviation of targets over the output's
MAX_TARGET = 100.0
MIN_ROWS = 4
SYMPTOMS = frozenset(
    {"exploding activations", "vanishing activations", "vanishing gradients", "saturated units", "dead units", "learning rate too large", "learning rate too small", "exploding recurrence"}
)  # fmt: skip
_NORMS = ("native_batch_norm", "_native_batch_norm_legit", "cudnn_batch_norm", "batch_norm", "native_layer_norm", "native_group_norm")  # fmt: skip


def inputs(trace: StepTrace) -> Iterator[Finding]:
    """Problems of the batch's inputs and targets that no change of the model repairs."""
    for finding in (_constant(trace), _scales(trace), _target_scale(trace), _leaked(trace)):
        if finding is not None:
            yield finding


def _first_layers(trace: StepTrace) -> list[TracedOp]:
    """Layers that read the batch's features, before any other layer or normalisation."""
    return [
        op
        for op in trace.layers
        if op.source is not None
        and (op.depth == 1 or _joins_batch(trace, op.source))
        and is_finite(op.source.now)
        and not _normalised(op.source)
    ]


def _joins_batch(trace: StepTrace, value: Value) -> bool:
    """Whether a value holds features of the batch as they are beside computed ones, such as embeddings of categories."""
    step = value.origin
    if step is None or packet(step.target) != "cat":
        return False
    given = [x for x in _input_tensors(trace) if x.is_floating_point()]
    parts = [entry.now for entry in step.inputs if entry.now is not None]
    return any(part.shape == x.shape and torch.equal(part.detach(), x) for part in parts for x in given)


def _normalised(value: Value) -> bool:
    """Whether a value was computed by a norm layer, looking through operators that keep the features apart."""
    for _ in range(16):
        step = value.origin
        if step is None or not step.inputs:
            return False
        if any(name in packet(step.target) for name in _NORMS):
            return True
        value = max(step.inputs, key=lambda entry: entry.numel)
    return False


def _scales(trace: StepTrace) -> Finding | None:
    for op in _first_layers(trace):
        assert op.source is not None
        assert op.source.now is not None
        values = op.source.now
        rows = to_double(by_unit(values, 1 if op.name == "convolution" else -1))
        if rows.is_complex() or len(rows) < MIN_ROWS:
            continue
        sizes = rows.square().mean(0).sqrt()
        present = sizes[sizes > 0]
        if len(present) < 1:
            continue
        large, small = float(present.max()), float(present.min())
        if len(present) > 1 and large > MIN_LARGE and large > MAX_RATIO * small and op.name != "convolution":
            index = int(sizes.argmax())
            return trace.finding(
                "inputs of very different scale", op.step, large / small,
                f"The RMS of the input features runs from {small:.3g} to {large:.3g} (feature {index}), and the loss is {trace.loss_value:.4g}: "
                "the layer sees hardly more than the largest features.",
                "Standardise every feature with mean and standard deviation of the training set, or put BatchNorm1d before this layer.",
            )  # fmt: skip
        if rms(values) > MAX_SCALE and not _followed_by_norm(trace, op):
            return trace.finding(
                "inputs not scaled", op.step, rms(values),
                f"The RMS of the inputs of the first layer is {rms(values):.3g}, and the loss is {trace.loss_value:.4g}; "
                "initialisation and learning rates are made for inputs of RMS near 1.",
                "Standardise the inputs (subtract the mean, divide by the standard deviation; pixels: divide by 255).",
            )  # fmt: skip
    return None


def _followed_by_norm(trace: StepTrace, op: TracedOp) -> bool:
    outputs = {id(op.out)}
    for later in trace.ops[trace.ops.index(op) + 1 :]:
        if any(id(value) in outputs for value in later.step.inputs):
            if any(name in later.name for name in _NORMS):
                return True
            if later.weights:
                return False
            outputs.update(id(value) for value in later.step.outputs)
    return False


def _target_scale(trace: StepTrace) -> Finding | None:
    targets, output = trace.targets, trace.output
    if (
        not isinstance(targets, Tensor)
        or not targets.is_floating_point()
        or output is None
        or targets.numel() < MIN_ROWS
    ):
        return None
    if targets.numel() != output.numel() or not is_finite(targets) or not is_finite(output):
        return None
    size, given = rms(targets), rms(output.detach())
    if size <= MAX_TARGET or size <= MAX_SCALE * given:
        return None
    return Finding(
        "targets not scaled", "", trace.default_line, size,
        f"The RMS of the targets is {size:.3g}, that of the outputs {given:.3g}, and the loss is {trace.loss_value:.4g}: "
        "most of the training goes into the size of the last layer.",
        "Standardise the targets (or take their logarithm), and undo it when predicting.",
    )  # fmt: skip


def _constant(trace: StepTrace) -> Finding | None:
    """Inputs that are equal in every example."""
    args = _input_tensors(trace)
    count = _batch_size(trace.targets, args)
    if count is None or count < MIN_ROWS:
        return None
    per_example = [x for x in args if x.dim() and len(x) == count and x.numel() > count * (x.dim() == 1)]
    if not per_example or not all(bool((x == x[:1]).all()) for x in per_example):
        return None
    targets = trace.targets
    if isinstance(targets, Tensor) and len(targets) and bool((targets == targets[:1]).all()):
        return None
    return Finding(
        "constant inputs", "", trace.default_line, 0.0,
        f"All {count} examples of the batch have equal inputs and different targets, so the model can learn only the mean target.",
        "Check how the batch is made: an index that stands still, or a tensor that is overwritten.",
    )  # fmt: skip


def _leaked(trace: StepTrace) -> Finding | None:
    """A feature that equals the target in every example."""
    targets = trace.targets
    if not isinstance(targets, Tensor) or not targets.dim() or targets.numel() != len(targets) or len(targets) < 16:
        return None
    flat = targets.flatten().double()
    if bool((flat == flat[0]).all()):
        return None
    for x in _input_tensors(trace):
        if x.dim() >= 2 and x[0].numel() > 1 and len(x) == len(flat) and x.is_floating_point():
            equal = (x.double().flatten(1) == flat[:, None]).all(0).nonzero().flatten().tolist()
            if equal:
                place = [int(index) for index in torch.unravel_index(torch.tensor(equal[0]), x.shape[1:])]
                name = str(place[0]) if len(place) == 1 else f"({', '.join(map(str, place))})"
                return Finding(
                    "target among the inputs", "", trace.default_line, equal[0],
                    f"Feature {name} equals the target in all {len(flat)} examples, so the model only has to copy it.",
                    "Remove this feature from the inputs, unless it is known when predicting.",
                )  # fmt: skip
    return None


def _input_tensors(trace: StepTrace) -> list[Tensor]:
    arguments = trace.training.arguments
    if arguments is None:
        return []
    given = (*arguments.args, *arguments.kwargs.values())
    return [x.detach() for x in given if isinstance(x, Tensor) and x is not arguments.targets and x.dtype != torch.bool]


def _batch_size(targets: Any, tensors: list[Tensor]) -> int | None:
    if isinstance(targets, Tensor) and targets.dim():
        return len(targets)
    return None if not tensors or not tensors[0].dim() else len(tensors[0])
