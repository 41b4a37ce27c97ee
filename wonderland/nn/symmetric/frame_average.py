"""Frame averaging: any module of points made symmetric to rotations and shifts, by a few frames that the points themselves give."""

import itertools

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.contract.arguments import Checked, check_specs

LARGEST = 6  # axes of space: there are 2^axes frames


@part
class FrameAverage(Checked, nn.Module):
    r"""A module of points averaged over the frames of their principal axes, so that it follows every rotation and reflection.

    .. math:: \bar f(X) = \frac{1}{|F|} \sum_{U \in F(X)} f\bigl((X - 1 t^\top) U\bigr) \;[\,U^\top + 1 t^\top\,], \qquad
        F(X) = \{U \operatorname{diag}(\pm 1)\}

    t is the mean of the points and U are the eigenvectors of their covariance, whose signs are open: 2^d frames instead of the
    infinitely many elements of the group. The part in brackets belongs to the equivariant form, whose outputs are points; otherwise
    outputs do not change when the points are moved. Where two eigenvalues are equal, axes are not unique and the symmetry holds only
    almost everywhere. `inner` is the spec of the module.

    Shapes: x (b, n, d) -> as `inner` gives, (b, n, d) if `equivariant`. Book: Alice 7.2. Paper: Puny et al., 2022.

    >>> from wonderland.nn.channel.mlp import MLP
    >>> FrameAverage(MLP.spec(dim=3), equivariant=True)(torch.randn(2, 5, 3)).shape
    torch.Size([2, 5, 3])
    """

    takes_specs = True

    def __init__(self, inner: Spec, *, equivariant: bool = False):
        super().__init__()
        check_specs([inner], "FrameAverage takes the spec of a module of points")
        self.equivariant, self.inner = equivariant, inner.build()

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return (laws.rotation_equivariance,)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 3 or not 1 <= x.shape[2] <= LARGEST:
            raise WonderlandError(
                f"FrameAverage takes points (b, n, d) in at most {LARGEST} dimensions, not {tuple(x.shape)}."
            )
        middle = x.mean(1, keepdim=True)
        centred = x - middle
        axes = torch.linalg.eigh(centred.mT @ centred).eigenvectors  # (b, d, d), one axis a column
        outputs = []
        for signs in itertools.product((1.0, -1.0), repeat=x.shape[2]):
            frame = axes * axes.new_tensor(signs)
            y = self.inner(centred @ frame)
            outputs.append(y @ frame.mT + middle if self.equivariant else y)
        return torch.stack(outputs).mean(0)
