"""How a batch goes into a model, and how a loss comes out."""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError

TARGETS = ("labels", "label", "targets", "target", "y")


class Meal(NamedTuple):
    """What a model is called with, and the targets that its answer is held against (None: it knows them itself)."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    targets: Any


def meal(model: nn.Module, batch: Any, loss: Any) -> Meal:
    """Read a batch: a tensor, (inputs, targets), several inputs with the targets last, or a dict by names.

    A model whose forward takes as many arguments as there are, or has a place named targets or labels, gets everything.
    """
    takes = _takes(model.forward)
    if isinstance(batch, dict):
        return _named(model, batch, takes)
    if not isinstance(batch, tuple | list):
        return Meal((batch,), {}, None)
    count = len(batch)
    if not count:
        raise WonderlandError("The batch is empty: give a tensor, a pair (inputs, targets), or a dict of tensors.")
    *inputs, last = batch
    if count == 2 and isinstance(inputs[0], dict):
        return Meal((), dict(inputs[0]), last)
    if count == 2 and isinstance(inputs[0], tuple | list) and (takes.needed > 1 or takes.many):
        return Meal(tuple(inputs[0]), {}, last)
    if count == 1 or takes.needed >= count:
        return Meal(tuple(batch), {}, None)
    if loss is None and len(takes.names) >= count and takes.names[count - 1] in TARGETS:
        return Meal(tuple(batch), {}, last)
    return Meal(tuple(inputs), {}, last)


class _Takes(NamedTuple):
    names: list[str]
    needed: int
    many: bool
    any_name: bool


def _takes(function: Callable[..., Any]) -> _Takes:
    try:
        given = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return _Takes([], 1, True, True)
    plain = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return _Takes(
        [p.name for p in plain] + [p.name for p in given if p.kind == p.KEYWORD_ONLY],
        sum(p.default is p.empty for p in plain),
        any(p.kind == p.VAR_POSITIONAL for p in given),
        any(p.kind == p.VAR_KEYWORD for p in given),
    )


def _named(model: nn.Module, batch: dict[str, Any], takes: _Takes) -> Meal:
    key = next((name for name in TARGETS if name in batch), None)
    fits = lambda names: takes.any_name or set(names) <= set(takes.names)  # noqa: E731
    if fits(batch):
        return Meal((), dict(batch), None if key is None else batch[key])
    rest = {name: value for name, value in batch.items() if name != key}
    targets = None if key is None else batch[key]
    if fits(rest):
        return Meal((), rest, targets)
    if len(rest) == 1:
        return Meal(tuple(rest.values()), {}, targets)
    if takes.needed == 1:
        return Meal((batch,), {}, targets)
    raise WonderlandError(
        f"The batch has {', '.join(map(repr, batch))}, and {type(model).__name__}.forward takes "
        f"{', '.join(map(repr, takes.names))}: name them alike."
    )


def loss_of(loss: Any, model: nn.Module, batch: Any, given: Meal, output: Any) -> Tensor:
    """The number that training makes small: by the loss given, by the model itself, or by the kind of targets."""
    if loss is not None:
        found = _by(loss, given, output)
    elif (own := own_loss(output)) is not None:
        found = own
    elif given.targets is not None:
        found = default(answer(output), given.targets)
    else:
        raise WonderlandError(
            f"{type(model).__name__} gives no loss, and the batch has no targets: give loss=, or a pair (inputs, targets)."
        )
    if not isinstance(found, Tensor) or found.numel() != 1 or not found.is_floating_point():
        had = f"a tensor {tuple(found.shape)}" if isinstance(found, Tensor) else f"a {type(found).__name__}"
        raise WonderlandError(f"A loss is one number, and this one gave {had}: take its .mean().")
    return found.reshape(())


def whole(loss: Any) -> Callable[[nn.Module, Any], Any] | None:
    """The loss as a function of model and batch, if it is one: a task of ours, or a function whose first word says so."""
    if loss is None or isinstance(loss, nn.Module):
        return None
    if callable(method := getattr(loss, "loss", None)) and not isinstance(loss, type):
        return method
    first = _takes(loss).names[:1]
    return loss if first and first[0] in ("model", "net", "network", "module", "m") else None


def _by(loss: Any, given: Meal, output: Any) -> Any:
    if not callable(loss):
        raise WonderlandError(f"A loss is a function or a module, not a {type(loss).__name__}.")
    if isinstance(loss, nn.Module) and type(loss).__module__.startswith("torch.nn"):
        output = answer(output)
    if given.targets is not None:
        return loss(output, given.targets)
    takes = _takes(loss.forward if isinstance(loss, nn.Module) else loss)
    inputs = (*given.args, *given.kwargs.values())
    return loss(output, inputs[0]) if takes.needed > 1 and inputs else loss(output)


def own_loss(output: Any) -> Tensor | None:
    """The loss that a model computed itself: its answer, `.loss`, "loss", or the one number in a tuple."""
    one = lambda found: isinstance(found, Tensor) and found.dim() == 0 and found.is_floating_point()  # noqa: E731
    if isinstance(output, dict) and one(output.get("loss")):
        return output["loss"]
    if not isinstance(output, Tensor | dict) and one(getattr(output, "loss", None)):
        return output.loss
    if isinstance(output, tuple | list):
        return next((entry for entry in output if one(entry)), None)
    return output if isinstance(output, Tensor) and one(output) else None


def answer(output: Any) -> Tensor:
    """The tensor that a model answers with: itself, `.logits`, "logits", or the first."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        named = output.get("logits")
        entries = [named, *output.values()] if named is not None else list(output.values())
    elif isinstance(output, tuple | list):
        entries = list(output)
    else:
        entries = [getattr(output, "logits", None)]
    for entry in entries:
        if isinstance(entry, Tensor) and entry.is_floating_point():
            return entry
    raise WonderlandError(f"The model answers with a {type(output).__name__} without a tensor: give loss=.")


def default(output: Tensor, targets: Any) -> Tensor:
    """Cross-entropy for whole numbers, squared error for real ones."""
    if not isinstance(targets, Tensor):
        raise WonderlandError(f"Targets are a tensor, not a {type(targets).__name__}: give loss=.")
    if targets.is_floating_point():
        if targets.numel() != output.numel():
            raise WonderlandError(
                f"The answer {tuple(output.shape)} and the targets {tuple(targets.shape)} differ in size: give loss=."
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
        f"The answer {tuple(output.shape)} has no score of each class for targets {tuple(targets.shape)}: give loss=."
    )


def classes(output: Tensor, targets: Any) -> int | None:
    """How many classes an answer has scores for, given targets of whole numbers; None where that is not the case."""
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
