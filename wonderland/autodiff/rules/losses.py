"""Rules of losses that have their own kernels: CTC and the chunked linear cross-entropy."""

import torch

from wonderland.autodiff.rules.table import from_program, rule

aten = torch.ops.aten


def _ctc(g, n):
    """By the backward kernel, which assumes that `log_probs` are normalised."""
    if g[0] is None:
        return None
    return aten._ctc_loss_backward(
        g[0], n.log_probs, n.targets, n.input_lengths, n.target_lengths, *n.y, n.blank, n.zero_infinity
    )


def _ctc_second(g, n):
    """The backward kernel is linear in `grad`, one factor for each sequence: (time, batch, classes), or no batch axis."""
    cotangents = n.call(grad=torch.ones_like(n.grad))
    return (g * cotangents).sum((0, 2)) if g.dim() == 3 else (g * cotangents).sum()


rule("_ctc_loss", log_probs=_ctc, nondifferentiable=(1,))
rule("_ctc_loss_backward", grad=_ctc_second)


def _cross_entropy(n):
    scores = torch.nn.functional.linear(n.input, n.linear_weight, n.linear_bias)
    return torch.nn.functional.cross_entropy(
        scores,
        n.target,
        weight=n.weight,
        ignore_index=n.ignore_index,
        reduction=getattr(n, "reduction", "none"),
        label_smoothing=getattr(n, "label_smoothing", 0.0),
    )


from_program(
    "torch_nn._linear_cross_entropy_batch_chunked",
    lambda n: (_cross_entropy(n), None, None, None),
    nondifferentiable=(1, 2, 3),
)
from_program("torch_nn._linear_cross_entropy_batch_chunked_no_reduction", _cross_entropy)
