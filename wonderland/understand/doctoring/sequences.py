"""Language models and forecasts: targets that are not shifted, and outputs that see the tokens they should predict."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.autodiff.node import Step
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace
from wonderland.understand.doctoring.training_copy import TrainingCopy

MIN_EQUAL = 0.99  # share of positions at which targets equal (shifted) inputs
MIN_LENGTH = 4
_TAKES_TARGETS = ("nll_loss_forward", "nll_loss2d_forward", "gather")


def sequences(trace: StepTrace, new_copy: Callable[[], TrainingCopy]) -> Iterator[Finding]:
    """Targets equal to the inputs of a causal model or to those before, or outputs that depend on later inputs although those are the targets."""
    pair = _pair(trace)
    if pair is None:
        return
    tokens, shift, step = pair
    leak = _leak(trace, new_copy, tokens)
    if leak is None:
        return
    path, sees_later = leak
    if shift < 1:
        if not sees_later:
            problem, which = (
                ("labels not shifted", "the input there")
                if shift == 0
                else ("labels shifted the wrong way", "the input before")
            )
            yield Finding(
                problem, "", trace.line(step) if step is not None else trace.default_line, 1.0,
                f"The target at every position of {tuple(tokens.shape)} equals {which}, so the model learns to copy its input "
                "and not to predict the next token.",
                "Shift them by one: inputs tokens[:, :-1], targets tokens[:, 1:].",
            )  # fmt: skip
        return
    if sees_later:
        yield Finding(
            "future leak", path, _line(trace, path), 1.0,
            f"The targets are the next inputs, and the outputs at positions before {tokens.shape[1] // 2} change if later inputs change: "
            f"{_name(trace.model, path)} sees what the model should predict.",
            _remedy(trace.model, path),
        )  # fmt: skip


def _pair(trace: StepTrace) -> tuple[Tensor, int, Step | None] | None:
    """The input sequence, whether the targets are the next inputs (1), the same ones (0) or those before (-1), and the step of the loss."""
    arguments, tensors = trace.training.arguments, list(trace.batch.values())[:1]
    if arguments is not None:
        tensors = [x for x in (*arguments.args, *arguments.kwargs.values()) if x is not arguments.targets]
    inputs = [
        x for x in tensors if isinstance(x, Tensor) and x.dim() >= 2 and x.shape[1] >= MIN_LENGTH and x.numel() > 8
    ]
    candidates: list[tuple[Tensor, Step | None]] = [
        (value.now, op.step)
        for op in trace.ops
        if op.name in _TAKES_TARGETS
        for value in op.step.inputs
        if value.now is not None and not value.now.is_floating_point() and value.now.numel() > 8
    ]
    if isinstance(trace.targets, Tensor) and trace.targets.is_floating_point():
        candidates.append((trace.targets, None))
    for targets, step in candidates:
        for tokens in inputs:
            if tokens is targets or (tokens.is_floating_point() != targets.is_floating_point()):
                continue
            if tokens.is_floating_point() and (tokens.shape != targets.shape or tokens.dim() != 3):
                continue
            if _agree(targets, tokens[:, 1:]):
                return tokens, 1, step
            if targets.numel() == tokens.numel():
                rows = targets.reshape(tokens.shape)
                if _agree(rows[:, :-1], tokens[:, 1:]) and not _agree(rows, tokens):
                    return tokens, 1, step
                if tokens.is_floating_point():
                    continue
                if _agree(rows, tokens):
                    return tokens, 0, step
                if _agree(rows[:, 1:], tokens[:, :-1]):
                    return tokens, -1, step
    return None


def _agree(targets: Tensor, tokens: Tensor) -> bool:
    if targets.numel() != tokens.numel():
        return False
    left, right = targets.flatten(), tokens.flatten()
    counted = left >= 0 if not left.is_floating_point() else torch.ones_like(left, dtype=torch.bool)
    # A sequence of one repeated token agrees with every shift of itself, and says nothing.
    if int(counted.sum()) < 8 or bool((right == right[0]).all()):
        return False
    return float((left == right)[counted].double().mean()) >= MIN_EQUAL


def _leak(trace: StepTrace, new_copy: Callable[[], TrainingCopy], tokens: Tensor) -> tuple[str, bool] | None:
    """The first module that lets later inputs change earlier outputs, and whether the last module's output does so."""
    cut = tokens.shape[1] // 2
    try:
        plain, changed = _activations(new_copy(), tokens, None), _activations(new_copy(), tokens, cut)
    except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
        return None
    if len(plain) != len(changed) or not plain:
        return None
    first, last = None, False
    for (path, before_in, before_out), (_, after_in, after_out) in zip(plain, changed, strict=True):
        convolution = isinstance(_module(trace.model, path), nn.Conv1d | nn.ConvTranspose1d)
        into = _differs(before_in, after_in, tokens, cut, convolution)
        out = _differs(before_out, after_out, tokens, cut, convolution)
        if out is None:
            continue
        last = out
        if first is None and (out or into):
            first = path if not into else path.rpartition(".")[0]
    return first or "", last


def _activations(training: TrainingCopy, tokens: Tensor, cut: int | None) -> list[tuple[str, Any, Any]]:
    """Path, first input and output of each call of a module without children, in eval mode."""
    training.model.eval()
    rows: list[tuple[str, Any, Any]] = []

    def hook(path: str) -> Callable[..., None]:
        def record(_: nn.Module, args: Any, output: Any) -> None:
            leaf = output[0] if isinstance(output, tuple | list) and output else output
            rows.append((path, args[0].detach().clone() if args and isinstance(args[0], Tensor) else None, leaf.detach().clone() if isinstance(leaf, Tensor) else None))  # fmt: skip

        return record

    for path, module in training.model.named_modules():
        if not any(True for _ in module.children()) or isinstance(module, nn.MultiheadAttention):
            module.register_forward_hook(hook(path))
    if cut is not None:
        for tensor in training.tensors():
            if tensor.shape == tokens.shape and bool((tensor == tokens).all()):
                # Later tokens in another order; a token of the sequence is a valid token.
                tensor[:, cut:] = tensor[:, cut:].flip(1) if tensor.is_floating_point() else _other(tensor, cut)
                break
    with torch.no_grad():
        training.run()
    return rows


def _other(tokens: Tensor, cut: int) -> Tensor:
    """Other valid tokens for the positions from `cut` on."""
    values = tokens.unique()
    index = torch.searchsorted(values, tokens[:, cut:].contiguous())
    return values[(index + 1) % len(values)]


def _differs(before: Any, after: Any, tokens: Tensor, cut: int, last: bool) -> bool | None:
    """Whether values before `cut` differ, None where a tensor has no axis of positions."""
    if not isinstance(before, Tensor) or not isinstance(after, Tensor) or before.shape != after.shape:
        return None
    if before.dim() < 2 or not before.is_floating_point() or before.shape[0] != tokens.shape[0]:
        return None
    lengths = (tokens.shape[1], tokens.shape[1] - 1)
    axis = next(
        (a for a in (range(2, before.dim()) if last else range(1, before.dim())) if before.shape[a] in lengths), None
    )
    if axis is None:
        return None
    early = slice(0, cut if before.shape[axis] == tokens.shape[1] else cut - 1)
    left, right = before.movedim(axis, 1)[:, early], after.movedim(axis, 1)[:, early]
    return not torch.allclose(left, right, rtol=1e-3, atol=1e-5 * max(1e-6, float(left.abs().max())))


def _module(model: nn.Module, path: str) -> nn.Module | None:
    try:
        return model.get_submodule(path)
    except AttributeError:
        return None


def _name(model: nn.Module, path: str) -> str:
    module = _module(model, path)
    return "the model" if module is None or not path else f"{path} ({type(module).__name__})"


def _line(trace: StepTrace, path: str) -> str:
    step = next((s for s in trace.steps if s.module == path or s.module.startswith(path + ".")), None)
    return trace.line(step)


def _remedy(model: nn.Module, path: str) -> str:
    module = _module(model, path)
    if isinstance(module, nn.Conv1d | nn.Conv2d | nn.ConvTranspose1d):
        return "Pad on the left only: F.pad(x, (dilation * (kernel_size - 1), 0)) before a convolution with padding=0."
    if isinstance(module, nn.RNNBase):
        return "Use bidirectional=False: the backward direction reads the future."
    if isinstance(module, nn.MultiheadAttention) or (module is not None and "tten" in type(module).__name__):
        return "Give the attention a causal mask: is_causal=True, or scores of later positions set to -inf before the softmax."
    return "Let each position see earlier positions only: a causal mask in attention, left padding in convolutions, no statistics over time."
