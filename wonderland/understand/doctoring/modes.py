"""Layers that behave differently in training: evaluation mode, dropout that removes nearly everything, batch norm of one example."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd
from torch.utils._pytree import tree_leaves

from wonderland.understand.doctoring.finding import Finding

MAX_DROPOUT = 0.9


def modes(model: nn.Module, batch: Any, line: str, in_step: bool | None = None) -> Iterator[Finding]:
    """Findings about modes; `in_step` is the mode in which the step function ran the model, None without one."""
    yield from _evaluation(model, line, model.training if in_step is None else in_step)
    for path, module in model.named_modules():
        if isinstance(module, _DropoutNd) and module.p >= MAX_DROPOUT:
            yield Finding(
                "dropout too large", path, line, module.p,
                f"It sets {module.p:.0%} of its inputs to 0 in training, so hardly any signal or gradient passes.",
                "Use p between 0.1 and 0.5.",
            )  # fmt: skip
            break
    norm = next(((path, m) for path, m in model.named_modules() if isinstance(m, _BatchNorm) and m.training), None)
    sizes = {len(x) for x in tree_leaves(batch) if isinstance(x, Tensor) and x.dim()}
    if norm is not None and sizes == {1}:
        yield batch_norm_of_one(norm[0], type(norm[1]).__name__, line)


def batch_norm_of_one(path: str, kind: str, line: str) -> Finding:
    """A batch norm that has one example to take statistics of."""
    return Finding(
        "batch norm with one example", path, line, 1.0,
        f"{kind} takes mean and variance over a batch of 1 example, so they say nothing about other examples.",
        "Use a larger batch (drop_last=True if it is the last one of an epoch), or GroupNorm or LayerNorm.",
    )  # fmt: skip


def _evaluation(model: nn.Module, line: str, training: bool) -> Iterator[Finding]:
    """A model, or a large part of it that is trained, in eval mode."""
    parts = [("", model)] if not training else list(_evaluated(model))
    for path, part in parts:
        affected = [name for name, module in part.named_modules() if _depends_on_mode(module)]
        if affected:
            kinds = sorted({type(part.get_submodule(name)).__name__ for name in affected})
            yield Finding(
                "evaluation mode while training", path, line, len(affected),
                f"{path or type(model).__name__} is in eval mode: {len(affected)} layer{'s' if len(affected) > 1 else ''} ({', '.join(kinds)}) "
                "without dropout, or with the running statistics of batch norm.",
                f"Call {'model' if not path else 'model.' + path}.train() before the training steps, and again after each evaluation.",
            )  # fmt: skip
            return


def _evaluated(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The highest parts in eval mode with several layers, all of whose parameters are trained.

    Frozen parts, and batch norms alone, are put into eval mode on purpose when a model is fine-tuned.
    """
    for path, module in model.named_modules():
        parent = model.get_submodule(path.rpartition(".")[0])
        parameters = list(module.parameters())
        highest = not module.training and (parent.training or not path) and any(True for _ in module.children())
        if highest and parameters and all(parameter.requires_grad for parameter in parameters):
            yield path, module


def _depends_on_mode(module: nn.Module) -> bool:
    if isinstance(module, _DropoutNd):
        return module.p > 0
    if isinstance(module, nn.RNNBase | nn.MultiheadAttention) and module.dropout:
        return True
    return isinstance(module, _BatchNorm) and module.track_running_stats
