"""Layers that the model uses and does not know: modules in a plain list or dict, tensors that are no nn.Parameter."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.training_copy import TrainingCopy


def unregistered(training: TrainingCopy, line: str) -> Iterator[Finding]:
    """Attributes with trainable tensors that `parameters()` does not list, that the optimizer lacks and that get a gradient."""
    model = training.model
    known = {id(parameter) for parameter in model.parameters()}
    optimizer = training.optimizer
    for group in optimizer.param_groups if optimizer is not None else ():
        known |= {id(parameter) for parameter in group["params"]}
    hidden = [
        (path, name, kind, tensors)
        for path, module in model.named_modules()
        for name, entry in vars(module).items()
        if not name.startswith("_")
        for kind, tensors in [_trainable(entry)]
        if any(id(tensor) not in known for tensor in tensors)
    ]
    if not hidden:
        return
    for *_, tensors in hidden:
        for tensor in tensors:
            tensor.grad = None
    try:
        loss = training.run()
        reached = torch.autograd.grad(loss, [t for *_, ts in hidden for t in ts], allow_unused=True)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return
    gradients = iter(reached)
    for path, name, kind, tensors in hidden:
        own = [next(gradients) for _ in tensors]
        if any(gradient is not None for gradient in own):
            count = sum(tensor.numel() for tensor in tensors)
            place = f"{path}.{name}" if path else name
            yield Finding(
                "parameters not registered", place, line, count,
                f"self.{name} is {kind} with {count:,} trainable numbers that parameters() does not list, so no optimizer trains them, "
                "and state_dict() does not save them.",
                "Use nn.ModuleList or nn.ModuleDict for layers, nn.Parameter for tensors.",
            )  # fmt: skip


def _trainable(entry: Any) -> tuple[str, list[Tensor]]:
    """What an attribute is, and the trainable leaf tensors in it."""
    if isinstance(entry, Tensor):
        return "a tensor", [entry] if entry.requires_grad and entry.is_leaf else []
    if not isinstance(entry, list | tuple | dict):
        return "", []
    parts = entry.values() if isinstance(entry, dict) else entry
    tensors = [
        tensor
        for part in parts
        for tensor in (part.parameters() if isinstance(part, nn.Module) else [part])
        if isinstance(tensor, Tensor) and tensor.requires_grad and tensor.is_leaf
    ]
    return f"a plain {type(entry).__name__}", tensors
