"""The echo state network: a recurrent layer that is never trained, and a linear map of its echoes that is."""

import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.nn.contract.mixer import Mixer, hide, lengths
from wonderland.nn.contract.state import Layout, Slot, State
from wonderland.ops.recurrence import recurrence


@part
class EchoState(Mixer):
    r"""A fixed random reservoir with a trained linear readout.

    .. math::
        s_i = (1 - \lambda)\, s_{i-1} + \lambda \tanh(A s_{i-1} + B x_i), \qquad y_i = C s_i + D x_i + b

    A and B are drawn once and saved as buffers; A is scaled to a spectral radius below 1, so that the past fades, and only
    C, D and b are parameters. `fit_readout` finds them in closed form; gradient descent works as for any module.

    Shapes: x (b, t, dim) -> (b, t, dim); state s (b, state_size), constant in t.
    spectral_radius: how slowly echoes fade. leak: :math:`\lambda`, the share of the state renewed at each token.
    input_scale: entries of B lie between plus and minus this; larger is less linear.
    Book: Alice 13.2. Paper: Jaeger, 2001; Lukosevicius, 2012.

    >>> mixer = EchoState(dim=1, state_size=50)
    >>> x = torch.sin(0.3 * torch.arange(200.0)).view(1, -1, 1)
    >>> _ = mixer.fit_readout(x[:, :-1], x[:, 1:], washout=20)
    >>> bool((mixer(x[:, :-1]) - x[:, 1:])[:, 20:].abs().max() < 1e-2)
    True
    """

    reservoir: Tensor
    entrance: Tensor

    def __init__(
        self,
        dim: int,
        *,
        state_size: int = 256,
        spectral_radius: float = 0.9,
        leak: float = 1.0,
        input_scale: float = 0.5,
    ):
        super().__init__()
        if state_size < 1:
            raise WonderlandError(f"EchoState needs a state_size of at least 1, not {state_size}.")
        if not 0 < leak <= 1:
            raise WonderlandError(f"EchoState needs a leak above 0 and at most 1, not {leak}.")
        if spectral_radius < 0:
            raise WonderlandError(f"EchoState needs a spectral_radius of at least 0, not {spectral_radius}.")
        self.dim, self.state_size, self.leak = dim, state_size, leak
        reservoir = torch.randn(state_size, state_size) * state_size**-0.5
        if not reservoir.is_meta:
            reservoir *= spectral_radius / torch.linalg.eigvals(reservoir).abs().max().clamp(min=1e-12)
        self.register_buffer("reservoir", reservoir)
        self.register_buffer("entrance", (2 * torch.rand(state_size, dim) - 1) * input_scale)
        self.readout = nn.Linear(state_size + dim, dim)

    def laws(self):
        from wonderland import laws

        return (*super().laws(), laws.strict_causality, laws.shift_equivariance)

    def layout(self) -> Layout:
        return (Slot((self.state_size,)),)

    def mix(self, x: Tensor, state: State | None, seen: Tensor | None, mask: Tensor | None) -> tuple[Tensor, State]:
        echoes, last = self._echoes(x, state, mask)
        return self.readout(torch.cat([echoes, x], -1)), last

    def _echoes(self, x: Tensor, state: State | None, mask: Tensor | None) -> tuple[Tensor, State]:
        start = (x.new_zeros(x.shape[0], self.state_size),) if state is None else state
        real = None if mask is None else lengths(mask)
        return recurrence("rnn_tanh", x, self.entrance, self.reservoir, None, start, lengths=real, leak=self.leak)

    @torch.no_grad()
    def fit_readout(
        self, x: Tensor, y: Tensor, *, ridge: float = 1e-6, washout: int = 0, mask: Tensor | None = None
    ) -> "EchoState":
        """Find the readout by ridge regression, in closed form and float64.

        x (b, t, dim) and the outputs wanted, y (b, t, dim). ridge: weight of the squared readout (the bias is free).
        washout: how many first positions of each row to leave out, where the state still remembers its start.
        """
        self.check(x, mask)
        if not ridge >= 0 or washout < 0:
            raise WonderlandError(f"fit_readout takes a ridge and a washout of at least 0, not {ridge} and {washout}.")
        if y.shape != x.shape:
            raise WonderlandError(
                f"fit_readout takes an output for each input, so y has shape {tuple(x.shape)}, not {tuple(y.shape)}."
            )
        x = hide(x, mask)
        seen = torch.cat([self._echoes(x, None, mask)[0], x], -1)[:, washout:]
        real = torch.ones(seen.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask[:, washout:]
        seen, wanted = seen[real].double(), y[:, washout:][real].double()
        if len(seen) < 2:
            raise WonderlandError(
                f"fit_readout has {len(seen)} positions after a washout of {washout}: give longer sequences."
            )
        centre, middle = seen.mean(0), wanted.mean(0)
        penalty = ridge**0.5 * torch.eye(seen.shape[1], dtype=torch.float64, device=x.device)
        rows = torch.cat([seen - centre, penalty])
        targets = torch.cat([wanted - middle, wanted.new_zeros(len(penalty), wanted.shape[1])])
        # Singular values below rounding belong to linearly dependent states; the minimum-norm solution ignores them.
        weight = torch.linalg.lstsq(rows, targets, driver="gelsd" if x.device.type == "cpu" else None).solution.T
        self.readout.weight.copy_(weight)
        self.readout.bias.copy_(middle - weight @ centre)
        return self
