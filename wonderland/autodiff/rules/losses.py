"""Rules of losses that are kernels of their own."""

import torch

from wonderland.autodiff.rules.table import rule, written

aten = torch.ops.aten


def _ctc(g, n):
    """By the kernel, which takes for granted that the inputs are logarithms of probabilities that add up to one."""
    if g[0] is None:
        return None
    return aten._ctc_loss_backward(
        g[0], n.log_probs, n.targets, n.input_lengths, n.target_lengths, *n.y, n.blank, n.zero_infinity
    )


def _ctc_again(g, n):
    """The kernel only scales what each sequence gives: (time, batch, classes), or one sequence without a batch."""
    slopes = n.call(grad=torch.ones_like(n.grad))
    return (g * slopes).sum((0, 2)) if g.dim() == 3 else (g * slopes).sum()


rule("_ctc_loss", log_probs=_ctc, blind=(1,))
rule("_ctc_loss_backward", grad=_ctc_again)


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


written(
    "torch_nn._linear_cross_entropy_batch_chunked",
    lambda n: (_cross_entropy(n), None, None, None),
    blind=(1, 2, 3),
)
written("torch_nn._linear_cross_entropy_batch_chunked_no_reduction", _cross_entropy)
