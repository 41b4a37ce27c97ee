"""Two forms of one equation must agree, in values and in every gradient."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    scale = max(expected.abs().max().item(), 1.0) if expected.numel() else 1.0
    error = (found - expected).abs().max().item() if expected.numel() else 0.0
    assert error <= tolerance * scale, f"differs by {error:.3g} at a scale of {scale:.3g}"


def agree(forms: Sequence[Callable[[], tuple[Tensor, ...]]], leaves: Sequence[Tensor], tolerance: float) -> None:
    """Each form's outputs and gradients equal those of the first, under one random weighting of the outputs."""
    results = []
    for form in forms:
        outputs = form()
        generator = torch.Generator().manual_seed(0)
        total = sum(
            (output * torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)).sum()
            for output in outputs
        )
        total = total.real if total.is_complex() else total
        results.append((*outputs, *torch.autograd.grad(total, leaves)))
    for result in results[1:]:
        for found, expected in zip(result, results[0], strict=True):
            close(found.detach(), expected.detach(), tolerance)


PRECISION = {torch.float64: 1e-10, torch.complex128: 1e-10, torch.float32: 1e-4, torch.complex64: 1e-4}
