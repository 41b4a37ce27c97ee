"""One token through causal attention in one call, where dispatch would cost more than arithmetic."""

import functools

import torch
from torch import Tensor

from wonderland.ops import native
from wonderland.ops.steps import entry


def _run(
    x, project, project_bias, out, out_bias, entries, grown, seen, frequencies, slopes,
    heads, kv_heads, key_dim, scale, half, copy,
):  # fmt: skip
    y = torch.empty_like(x)
    native.function("attention_step", "step", x.dtype)(
        x.contiguous(), project.contiguous(), project_bias, out.contiguous(), out_bias, entries, grown, seen,
        frequencies, slopes, y, _number(scale), x.shape[0], x.shape[2], heads, kv_heads, key_dim, out.shape[1] // heads,
        entries.shape[1], entries.stride(0), grown.stride(0), 0 if frequencies is None else frequencies.shape[0],
        int(half), int(copy), torch.get_num_threads(),
    )  # fmt: skip
    return y


@functools.lru_cache(maxsize=256)
def _number(scale: float) -> Tensor:
    """Kernels take tensors and whole numbers."""
    return torch.tensor(scale, dtype=torch.float64)


# `entries` (b, n, width) is the cache, `grown` (b, n + 1, width) the one that follows: written to, and copied into first
# unless it is the same memory. `frequencies` are those of `Rotary`, `slopes` those of `Alibi`.
attention_step = entry(
    "attention_step(Tensor x, Tensor project, Tensor? project_bias, Tensor out, Tensor? out_bias, Tensor entries, "
    "Tensor(a!) grown, Tensor seen, Tensor? frequencies, Tensor? slopes, int heads, int kv_heads, int key_dim, "
    "float scale, bool half, bool copy) -> Tensor",
    _run,
    lambda x, *rest: torch.empty_like(x),
)
