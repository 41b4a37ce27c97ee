"""What diagonal state spaces share: initialisation, discretisation, and the scan over states."""

import math

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.nn.contract.mixer import lengths
from wonderland.ops.scan import linear_scan

STARTS = ("legs", "lin", "inv")
RULES = ("hold", "bilinear", "euler")
AT_ONCE = 1 << 22  # states held at once while a long piece is streamed


def hippo(n: int) -> tuple[Tensor, Tensor]:
    r"""The HiPPO-LegS matrices, whose state holds the coefficients of the past in Legendre polynomials.

    .. math::
        A_{ij} = -\begin{cases} \sqrt{(2i+1)(2j+1)} & i > j \\ i + 1 & i = j \\ 0 & i < j \end{cases}, \qquad
        B_i = \sqrt{2i + 1}

    >>> hippo(2)[0]
    tensor([[-1.0000,  0.0000],
            [-1.7321, -2.0000]], dtype=torch.float64)
    """
    root = (2 * torch.arange(n, dtype=torch.float64) + 1).sqrt()
    a = 0 - (root.unsqueeze(1) * root).tril(-1) - torch.diag(torch.arange(1, n + 1, dtype=torch.float64))
    return a, root


def eigenvalues(n: int, start: str = "legs") -> Tensor:
    r"""n eigenvalues with positive imaginary part, one of each conjugate pair, as real and imaginary parts (n, 2).

    `legs`: those of HiPPO-LegS without its low-rank part, which is what keeps it from being diagonal; `lin`:
    :math:`-\tfrac12 + i \pi k`; `inv`: :math:`-\tfrac12 + i \tfrac{N}{\pi} (\tfrac{N}{2k+1} - 1)` with N = 2n, close to `legs`.
    """
    if start not in STARTS:
        raise WonderlandError(f"A state space starts as {', '.join(STARTS)}, not {start!r}.{nearest(start, STARTS)}")
    k = torch.arange(n, dtype=torch.float64)
    if start == "legs":
        a, b = hippo(2 * n)
        # With b b' / 2 added, the matrix is -1/2 and a skew-symmetric part, whose spectrum is imaginary.
        skew = a + b.unsqueeze(1) * b / 2 + torch.eye(2 * n, dtype=torch.float64) / 2
        imaginary = torch.linalg.eigvals(skew).imag.sort().values[n:]
    else:
        imaginary = math.pi * k if start == "lin" else (2 * n / math.pi) * (2 * n / (2 * k + 1) - 1)
    return torch.stack([torch.full_like(imaginary, -0.5), imaginary], 1)


def check_rule(rule: str, name: str) -> None:
    """Raise for an unknown rule, with a list of those there are."""
    if rule not in RULES:
        raise WonderlandError(f"{name} has the rules {', '.join(RULES)}, not {rule!r}.{nearest(rule, RULES)}")


def discretise(step: Tensor, a: Tensor, rule: str) -> tuple[Tensor, Tensor]:
    r"""Decay of the state and weight of the input for one step, for complex a with negative real part.

    `hold`: :math:`e^{\Delta a}` and :math:`(e^{\Delta a} - 1) / a`; `bilinear`: :math:`(1 + \Delta a/2) q` and
    :math:`\Delta q` with :math:`q = 1 / (1 - \Delta a/2)`; `euler`, as in Mamba: :math:`e^{\Delta a}` and :math:`\Delta`.
    """
    if rule == "bilinear":
        q = 1 / (1 - step * a / 2)
        return (1 + step * a / 2) * q, step * q
    decay = torch.exp(step * a)
    if rule == "euler":
        return decay, step * torch.ones_like(a)
    # e^z - 1 = 2 e^(z/2) sinh(z/2), which does not cancel for small steps; what is damped at once would overflow there.
    half = step * a / 2
    gone = half.real < -40
    half = torch.where(gone, torch.zeros_like(half), half)
    return decay, torch.where(gone, decay - 1, 2 * torch.exp(half) * torch.sinh(half)) / a


def powers(decay: Tensor, t: int) -> Tensor:
    """The first t powers of complex numbers (...), from 1 on: (..., t). Of what is damped at once, 1 is all that counts.

    >>> powers(torch.tensor([0.5 + 0j, 0j]), 3).real
    tensor([[1.0000, 0.5000, 0.2500],
            [1.0000, 0.0000, 0.0000]])
    """
    time = torch.arange(t, device=decay.device, dtype=decay.real.dtype)
    gone = decay.detach().abs() < torch.finfo(time.dtype).tiny ** 0.5
    result = torch.exp(torch.log(torch.where(gone, torch.ones_like(decay), decay)).unsqueeze(-1) * time)
    return torch.where(gone.unsqueeze(-1), (time == 0).to(result.dtype), result)


def wide(x: Tensor) -> Tensor:
    """At least single precision: there are no complex numbers below it."""
    return x.float() if x.element_size() < 4 else x


def scan_states(decay: Tensor, drive: Tensor, state: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """All states (b, t, p) of a complex diagonal recurrence, and the last as real pairs (b, p, 2)."""
    first = None if state is None else torch.view_as_complex(wide(state).contiguous())
    states = linear_scan(decay, drive, first, lengths=None if mask is None else lengths(mask))
    return states, torch.view_as_real(states)[:, -1]


def log_steps(n: int, smallest: float = 1e-3, largest: float = 1e-1) -> Tensor:
    """Logarithms of step sizes, drawn evenly between two bounds."""
    return torch.empty(n).uniform_(math.log(smallest), math.log(largest))
