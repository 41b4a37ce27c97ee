"""The gated recurrent unit: an update gate and a reset gate."""

from wonderland.core import part
from wonderland.nn.mixers.recurrent import Recurrent, among


@part
class GRU(Recurrent):
    r"""A recurrent layer with an update gate z and a reset gate r.

    .. math::
        r_i &= \sigma(W_r x_i + V_r s_{i-1} + b_r), \qquad z_i = \sigma(W_z x_i + V_z s_{i-1} + b_z) \\
        n_i &= \tanh(W_n x_i + b_n + r_i \odot (V_n s_{i-1} + b'_n)) && \text{reset after} \\
        n_i &= \tanh(W_n x_i + b_n + V_n (r_i \odot s_{i-1})) && \text{reset before} \\
        s_i &= (1 - z_i) \odot n_i + z_i \odot s_{i-1}

    The two places of the reset gate are two models, and weights of one do not fit the other: "after" is what torch.nn and
    cuDNN compute, "before" what the books print. z = 1 keeps the state (Li-GRU's gate has the opposite meaning).

    Shapes: x (b, t, dim) -> (b, t, dim); state s (b, state_size), constant in t.
    Book: Alice 13.2; Dive into Deep Learning 10.2. Paper: Cho et al., 2014.

    >>> import torch
    >>> GRU(dim=4, reset="before")(torch.randn(2, 3, 4)).shape
    torch.Size([2, 3, 4])
    """

    def __init__(self, dim: int, *, state_size: int | None = None, reset: str = "after", bias: bool = True):
        cell = f"gru_{among('GRU', 'reset', reset, ('after', 'before'))}"
        super().__init__(dim, state_size=state_size, cell=cell, bias=bias, candidate=reset == "after")
