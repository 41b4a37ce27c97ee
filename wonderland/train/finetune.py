"""Fine-tuning: train all of a pretrained model, its head, or an adapter."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, nearest
from wonderland.models.adapt import BLOCKS, Where, adapt, train_only
from wonderland.train.loop import run
from wonderland.train.state import State
from wonderland.train.supervised import Loss, Supervised, adamw

METHODS = ("full", "head")
HEAD = ("head*", "hidden*", "pair*", "transform*", "norm*", "bias")


def finetune(
    model: nn.Module,
    batches: Any,
    *,
    method: Any = "full",
    where: Where = BLOCKS,
    also: Where = (),
    steps: int = 200,
    lr: float | None = None,
    loss: Loss | None = None,
    weight_decay: float = 0.0,
    **options: Any,
) -> Any:
    """Fine-tune a pretrained model on batches (x, y); returns the model, with the adapter if one was asked for.

    Args:
        model: for example from `checkpoints.load_pretrained(folder)`; it is changed in place.
        batches: what `train.run` takes: a function of the step number, or a list.
        method: "full", "head" (everything but the trunk), or the spec of an adapter such as `nn.LoRA.spec(rank=8)`.
        where, also: the layers that get an adapter, and other parameters to train (such as a new head).
        lr: 1e-3 for adapters and heads, 1e-4 for the full model, unless given.
        loss: cross-entropy of `model(x)` against y, where -100 is skipped, unless given.
        options: further arguments of `train.run`, such as folder, evaluate and progress.

    >>> import torch
    >>> from wonderland import models, nn as blocks
    >>> model = models.Decoder(vocab=5, dim=8, depth=1)
    >>> text = torch.arange(6).repeat(4, 1) % 5
    >>> model = finetune(model, [(text[:, :-1], text[:, 1:])], method=blocks.LoRA.spec(rank=2), steps=2)
    """
    model = make_trainable(model, method, where, also=also)
    rate = (1e-4 if method == "full" else 1e-3) if lr is None else lr
    state = State(model=model, optimizer=adamw(model, lr=rate, weight_decay=weight_decay))
    run(Supervised(loss=loss or cross_entropy, steps=steps, lr=rate), state, batches, steps=steps, **options)
    return model.eval()


def make_trainable(model: Any, method: Any = "full", where: Where = BLOCKS, *, also: Where = ()) -> Any:
    """The model, ready to be trained by a method: its parameters require gradients, all others are frozen; adapters are added."""
    if isinstance(method, Spec):
        return adapt(model, method, where, also=also)
    if method == "full":
        train_only(model, "*")
    elif method == "head":
        names = [name for name, _ in model.named_parameters()]
        has_trunk = "trunk" in dict(model.named_children())
        if not has_trunk and not any(name.startswith("head") for name in names):
            raise WonderlandError(
                f"This {type(model).__name__} has no separate head, it shares the embedding: tune it in full, or with an adapter."
            )
        train_only(model, HEAD if has_trunk else ("head*",))
    else:
        raise WonderlandError(
            f"A model is tuned 'full', by its 'head', or with the spec of an adapter, not {method!r}."
            f"{nearest(str(method), METHODS)}"
        )
    return model


def cross_entropy(model: nn.Module, batch: Any) -> Tensor:
    """The mean cross-entropy of classes or of tokens; -100 is ignored."""
    x, y = batch["x"], batch["y"]
    scores = model(x)
    return F.cross_entropy(scores.flatten(0, -2), y.flatten())
