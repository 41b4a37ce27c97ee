"""Small blocks for tests of the laws: some keep them, some break them at a known place."""

import torch
from torch import Tensor, nn


class Peek(nn.Module):
    """Every output is its own input, but one also sees another position."""

    def __init__(self, output: int, sees: int, amount: float = 1.0, *, hidden: bool = False):
        super().__init__()
        self.output, self.sees, self.amount, self.hidden = output, sees, amount, hidden

    def forward(self, x: Tensor) -> Tensor:
        y = x.clone()
        seen = x[:, self.sees].detach() if self.hidden else x[:, self.sees]
        y[:, self.output] = y[:, self.output] + self.amount * seen
        return y


class Running(nn.Module):
    """A leaky sum of the past, by the contract of mixers; `fault` spoils it at one place."""

    causal = True

    def __init__(self, dim: int = 4, fault: str = ""):
        super().__init__()
        self.dim, self.fault = dim, fault
        self.weight = nn.Parameter(torch.randn(dim, dim) / dim**0.5)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.stream(x, None, mask)[0] if self.fault != "whole" else self.stream(2 * x, None, mask)[0]

    def stream(self, x: Tensor, state: tuple | None = None, mask: Tensor | None = None) -> tuple[Tensor, tuple]:
        if mask is not None and self.fault != "reads padding":
            x = x.masked_fill(~mask.unsqueeze(-1), 0)
        if mask is not None and self.fault == "reads padding":
            x = x.nan_to_num(nan=1.0)
        h = x.new_zeros(x.shape[0], self.dim) if state is None else state[0]
        if state is not None and self.fault == "forgets at the second piece":
            h = torch.zeros_like(h)
        if state is not None and self.fault == "forgets without gradients" and not torch.is_grad_enabled():
            h = torch.zeros_like(h)
        if state is not None and self.fault == "cuts the gradient":
            h = h.detach()
        inward, outputs = x @ self.weight, []
        for i in range(x.shape[1]):
            new = 0.5 * h + inward[:, i]
            keep = mask is not None and self.fault not in ("moves on at padding", "reads padding")
            h = torch.where(mask[:, i, None], new, h) if keep else new
            outputs.append(h)
        y = torch.stack(outputs, 1)
        if state is not None and self.fault == "writes into the state":
            with torch.no_grad():
                state[0].add_(1.0)
        if mask is not None and self.fault != "answers at padding":
            y = y.masked_fill(~mask.unsqueeze(-1), 0)
        return y, (h,)


class Convolution(nn.Module):
    """A convolution over time: causal, or centred."""

    def __init__(self, dim: int, width: int, *, causal: bool = True, field: tuple[int, int] | None = None):
        super().__init__()
        self.inner = nn.Conv1d(dim, dim, width)
        self.left = width - 1 if causal else width // 2
        self.right = width - 1 - self.left
        self.receptive_field = field or (self.left, self.right)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(nn.functional.pad(x.mT, (self.left, self.right))).mT
