"""Finiteness: large, tiny, zero and alternating inputs give finite outputs and gradients in float32."""

import torch
from torch import Tensor

from wonderland.laws.compare import weighted_gradients
from wonderland.laws.subject import Subject, law
from wonderland.laws.verdict import Verdict


@law(dtype=torch.float32, compares=False)
def finiteness(subject: Subject) -> Verdict:
    """Inputs of size 1e4 and 1e-30, zeros, and signs that alternate give finite outputs and gradients in float32."""
    for description, x in _inputs(subject):
        leaves = [("the input", x.requires_grad_())] if x.is_floating_point() or x.is_complex() else []
        leaves += subject.parameters()
        y = subject.run(x, when=f"for {description}")
        if not bool(y.isfinite().all()):
            return subject.verdict(float("inf"), 0.0, f"{_first_nonfinite(subject, y)} for {description}")
        weights = subject.noise(y.detach())
        for (name, _), gradient in zip(
            leaves, weighted_gradients(y, weights, [leaf for _, leaf in leaves]), strict=True
        ):
            if not bool(gradient.isfinite().all()):
                kind = "NaN" if bool(gradient.isnan().any()) else "infinite"
                return subject.verdict(float("inf"), 0.0, f"the gradient by {name} is {kind} for {description}")
    return subject.verdict(0.0, 0.0)


def _inputs(subject: Subject) -> list[tuple[str, Tensor]]:
    x = subject.x
    if not (x.is_floating_point() or x.is_complex()):
        return [("these tokens", x)]
    signs = (torch.arange(x.numel(), device=x.device) % 2 * 2 - 1).view(x.shape).to(x)
    return [
        ("inputs of size 1e4", 1e4 * subject.noise(x)),
        ("inputs of size 1e-30", 1e-30 * subject.noise(x)),
        ("zeros", torch.zeros_like(x)),
        ("alternating inputs of 1", signs),
        ("alternating inputs of 1e4", 1e4 * signs),
    ]


def _first_nonfinite(subject: Subject, y: Tensor) -> str:
    bad = (~y.isfinite()).nonzero()[0]
    index = tuple(int(number) for number in bad)
    return f"{subject.place(index)} is {float(y[index].detach().abs()):g}"
