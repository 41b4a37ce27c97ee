"""Calling a model on a batch, and computing the loss from its output."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError

TARGETS = ("labels", "label", "targets", "target", "y")


class CallArguments(NamedTuple):
    """The arguments of the forward pass, and the targets for the loss (None where the model computes its loss itself)."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    targets: Any


def read_batch(model: nn.Module, batch: Any, loss: Any) -> CallArguments:
    """Arguments and targets of a batch: a tensor, (inputs, targets), several inputs with the targets last, or a dict by names.

    A model whose forward takes as many arguments as the batch has, or has an argument named targets or labels, gets all of it.
    """
    signature = _signature(model.forward)
    if isinstance(batch, dict):
        return _from_dict(model, batch, signature)
    if not isinstance(batch, tuple | list):
        return CallArguments((batch,), {}, None)
    count = len(batch)
    if not count:
        raise WonderlandError("The batch is empty: give a tensor, a pair (inputs, targets), or a dict of tensors.")
    *inputs, last = batch
    if count == 2 and isinstance(inputs[0], dict):
        return CallArguments((), dict(inputs[0]), last)
    if count == 2 and isinstance(inputs[0], tuple | list) and (signature.required > 1 or signature.var_positional):
        return CallArguments(tuple(inputs[0]), {}, last)
    if count == 1 or signature.required >= count:
        return CallArguments(tuple(batch), {}, None)
    if loss is None and len(signature.names) >= count and signature.names[count - 1] in TARGETS:
        return CallArguments(tuple(batch), {}, last)
    return CallArguments(tuple(inputs), {}, last)


class _Signature(NamedTuple):
    names: list[str]
    required: int
    var_positional: bool
    var_keyword: bool


def _signature(function: Callable[..., Any]) -> _Signature:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _Signature([], 1, True, True)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return _Signature(
        [p.name for p in positional] + [p.name for p in parameters if p.kind == p.KEYWORD_ONLY],
        sum(p.default is p.empty for p in positional),
        any(p.kind == p.VAR_POSITIONAL for p in parameters),
        any(p.kind == p.VAR_KEYWORD for p in parameters),
    )


def argument_names(function: Callable[..., Any]) -> list[str]:
    """The names of the arguments of a function that have no default."""
    parameters = inspect.signature(function).parameters.values()
    return [
        p.name for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]


def _from_dict(model: nn.Module, batch: dict[str, Any], signature: _Signature) -> CallArguments:
    key = next((name for name in TARGETS if name in batch), None)
    accepts = lambda names: signature.var_keyword or set(names) <= set(signature.names)  # noqa: E731
    if accepts(batch):
        return CallArguments((), dict(batch), None if key is None else batch[key])
    inputs = {name: value for name, value in batch.items() if name != key}
    targets = None if key is None else batch[key]
    if accepts(inputs):
        return CallArguments((), inputs, targets)
    if len(inputs) == 1:
        return CallArguments(tuple(inputs.values()), {}, targets)
    if signature.required == 1:
        return CallArguments((batch,), {}, targets)
    raise WonderlandError(
        f"The batch has {', '.join(map(repr, batch))}, and {type(model).__name__}.forward takes "
        f"{', '.join(map(repr, signature.names))}: use the same names."
    )


def loss_of(loss: Any, model: nn.Module, batch: Any, given: CallArguments, output: Any) -> Tensor:
    """The loss as a scalar: from the function given, from the model itself, or from the default for the targets."""
    if loss is not None:
        value = _call(loss, given, output)
    elif (own := own_loss(output)) is not None:
        value = own
    elif given.targets is not None:
        value = default_loss(output_tensor(output), given.targets)
    else:
        raise WonderlandError(
            f"{type(model).__name__} returned no loss, and the batch has no targets: give loss=, or a pair (inputs, targets)."
        )
    if not isinstance(value, Tensor) or value.numel() != 1 or not value.is_floating_point():
        got = f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
        raise WonderlandError(f"A loss is one number, and this one returned {got}: take its .mean().")
    return value.reshape(())


def model_loss(loss: Any) -> Callable[[nn.Module, Any], Any] | None:
    """The loss as a function of (model, batch), if it is one: a task, or a function whose first argument is called model."""
    if loss is None or isinstance(loss, nn.Module):
        return None
    if callable(method := getattr(loss, "loss", None)) and not isinstance(loss, type):
        return method
    first = _signature(loss).names[:1]
    return loss if first and first[0] in ("model", "net", "network", "module", "m") else None


def _call(loss: Any, given: CallArguments, output: Any) -> Any:
    if not callable(loss):
        raise WonderlandError(f"A loss is a function or a module, not a {type(loss).__name__}.")
    if isinstance(loss, nn.Module) and type(loss).__module__.startswith("torch.nn"):
        output = output_tensor(output)
    if given.targets is not None:
        return loss(output, given.targets)
    signature = _signature(loss.forward if isinstance(loss, nn.Module) else loss)
    inputs = (*given.args, *given.kwargs.values())
    return loss(output, inputs[0]) if signature.required > 1 and inputs else loss(output)


def own_loss(output: Any) -> Tensor | None:
    """The loss that a model computed itself: a scalar output, `.loss`, "loss", or the scalar in a tuple."""
    scalar = lambda value: isinstance(value, Tensor) and value.dim() == 0 and value.is_floating_point()  # noqa: E731
    if isinstance(output, dict) and scalar(output.get("loss")):
        return output["loss"]
    if not isinstance(output, Tensor | dict) and scalar(getattr(output, "loss", None)):
        return output.loss
    if isinstance(output, tuple | list):
        return next((entry for entry in output if scalar(entry)), None)
    return output if isinstance(output, Tensor) and scalar(output) else None


def output_tensor(output: Any) -> Tensor:
    """The output tensor of a model: itself, `.logits`, "logits", or the first tensor of floats."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        logits = output.get("logits")
        entries = [logits, *output.values()] if logits is not None else list(output.values())
    elif isinstance(output, tuple | list):
        entries = list(output)
    else:
        entries = [getattr(output, "logits", None)]
    for entry in entries:
        if isinstance(entry, Tensor) and entry.is_floating_point():
            return entry
    raise WonderlandError(f"The model returned a {type(output).__name__} without a float tensor: give loss=.")


def default_loss(output: Tensor, targets: Any) -> Tensor:
    """Cross-entropy for integer targets, squared error for floats."""
    if not isinstance(targets, Tensor):
        raise WonderlandError(f"Targets are a tensor, not a {type(targets).__name__}: give loss=.")
    if targets.is_floating_point():
        if targets.numel() != output.numel():
            raise WonderlandError(
                f"The output {tuple(output.shape)} and the targets {tuple(targets.shape)} differ in size: give loss=."
            )
        return F.mse_loss(output, targets.reshape(output.shape).to(output.dtype))
    if targets.numel() == output.numel():
        return F.binary_cross_entropy_with_logits(output, targets.reshape(output.shape).to(output.dtype))
    if output.shape[:-1] == targets.shape:
        return F.cross_entropy(output.flatten(0, -2), targets.flatten().long())
    if targets.dim() == 2 and targets.shape[1] == 1 and output.dim() == 2:
        targets = targets[:, 0]
    if output.dim() == targets.dim() + 1 and (output.shape[0], *output.shape[2:]) == tuple(targets.shape):
        return F.cross_entropy(output, targets.long())
    raise WonderlandError(
        f"The output {tuple(output.shape)} has no logits for the classes of targets {tuple(targets.shape)}: give loss=."
    )


def classes(output: Tensor, targets: Any) -> int | None:
    """The number of classes of an output, given integer targets; None for other outputs and targets."""
    if (
        not isinstance(targets, Tensor)
        or targets.is_floating_point()
        or targets.dtype == torch.bool
        or not output.dim()
    ):
        return None
    if output.shape[:-1] == targets.shape:
        return output.shape[-1]
    if output.dim() == targets.dim() + 1 and (output.shape[0], *output.shape[2:]) == tuple(targets.shape):
        return output.shape[1]
    flat = targets.dim() == 2 and targets.shape[1] == 1
    return output.shape[1] if flat and output.dim() == 2 and output.shape[1] > 1 else None
