"""Group averaging: any module of images made symmetric by averaging over turned and mirrored copies."""

import torch
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.contract.arguments import Checked, check_specs

GROUPS = {
    "mirrors": [(0, False), (0, True)],
    "rotations": [(turns, False) for turns in range(4)],
    "both": [(turns, mirrored) for mirrored in (False, True) for turns in range(4)],
}


@part
class GroupAverage(Checked, nn.Module):
    r"""A module of images averaged over a group of rotations by 90 degrees and mirror images.

    .. math:: \bar f(x) = \frac{1}{|G|} \sum_{g \in G} f(g x) \quad \text{(invariant)}, \qquad
        \bar f(x) = \frac{1}{|G|} \sum_{g \in G} g^{-1} f(g x) \quad \text{(equivariant)}

    `inner` is the spec of the module. `group` is "rotations" (4 elements), "mirrors" (2) or "both" (8). With `equivariant`, outputs
    are maps (b, d, h', w') that turn with the image; otherwise they do not change when it does. The module keeps what it has learned:
    averaging costs |G| passes and no parameters. Rotations need square images.

    Shapes: x (b, c, h, w) -> as `inner` gives. Book: Alice 7.2. Paper: Puny et al., 2022 (frame averaging).

    >>> from wonderland.nn.vision.conv_norm import ConvNorm
    >>> layer = GroupAverage(ConvNorm.spec(dim=1, out=2), group="rotations", equivariant=True)
    >>> layer(torch.zeros(2, 1, 6, 6)).shape
    torch.Size([2, 2, 6, 6])
    """

    takes_specs = True

    def __init__(self, inner: Spec, *, group: str = "rotations", equivariant: bool = False):
        super().__init__()
        check_specs([inner], "GroupAverage takes the spec of a module of images")
        if group not in GROUPS:
            raise WonderlandError(f"GroupAverage knows the groups {', '.join(GROUPS)}, not {group!r}.")
        self.group, self.equivariant, self.inner = group, equivariant, inner.build()

    def laws(self):
        """What this instance promises; the suite checks it."""
        from wonderland import laws

        return () if self.group == "mirrors" else (laws.rotation_equivariance,)

    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 4 or (self.group != "mirrors" and x.shape[2] != x.shape[3]):
            raise WonderlandError(
                f"GroupAverage over {self.group} takes square images (b, c, h, w), not {tuple(x.shape)}."
                if self.group != "mirrors"
                else f"GroupAverage takes images (b, c, h, w), not {tuple(x.shape)}."
            )
        outputs = []
        for turns, mirrored in GROUPS[self.group]:
            moved = x.flip(-1) if mirrored else x
            y = self.inner(torch.rot90(moved, turns, (-2, -1)))
            if self.equivariant:
                y = torch.rot90(y, -turns, (-2, -1))
                y = y.flip(-1) if mirrored else y
            outputs.append(y)
        return torch.stack(outputs).mean(0)
