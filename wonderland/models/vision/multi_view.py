"""MultiView: one answer from several views of a thing, in any number and order."""

from jaxtyping import Float
from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError, part
from wonderland.models.encoder_decoder import with_direction
from wonderland.models.vision.image_model import linear_head
from wonderland.nn.blocks.block import Block
from wonderland.nn.contract.arguments import Checked, check_specs
from wonderland.nn.mixers.attention import Attention


@part
class MultiView(Checked, nn.Module):
    r"""A shared network of images for each view, a block that lets the views exchange what they saw, the mean, one linear layer.

    .. math:: h_i = g(x_i), \qquad H \leftarrow \mathrm{block}(H), \qquad y = W \frac{1}{v} \sum_i h_i + b

    `trunk` is the spec of a network of images whose `features` have `dim` numbers. `mixer` is the spec of the token mixer of the block:
    attention with 4 heads and without positions unless given, `nn.DeepSets` for the linear layers that commute with reorderings, False
    for no block at all. Views may differ in number from batch to batch, and their order means nothing.

    Shapes: x (b, v, c, h, w) -> (b, classes). Book: Alice 10, exercise 1.

    >>> import torch
    >>> from wonderland.models import LeNet
    >>> net = MultiView(LeNet.spec(classes=0), 84, classes=3)
    >>> net(torch.zeros(2, 5, 1, 28, 28)).shape
    torch.Size([2, 3])
    """

    takes_specs = True

    def __init__(self, trunk: Spec, dim: int, classes: int = 10, *, mixer: Spec | bool | None = None):
        super().__init__()
        check_specs([trunk], "MultiView takes the spec of a network of images")
        self.trunk = trunk.build()
        if not hasattr(self.trunk, "features"):
            raise WonderlandError(f"MultiView needs a network of images with features, and {trunk.name} has none.")
        attention = Attention.spec(heads=4, causal=False)
        chosen = attention if mixer is None or mixer is True else mixer
        self.block = None
        if isinstance(chosen, Spec):
            self.block = Block.spec(mixer=with_direction(chosen, causal=False)).build(dim=dim)
        self.head = linear_head(dim, classes)

    def views(self, x: Tensor) -> Float[Tensor, "b v d"]:
        """The features of each view, after the block."""
        if x.dim() != 5 or x.shape[1] < 1:
            raise WonderlandError(f"MultiView takes images (b, views, c, h, w), not {tuple(x.shape)}.")
        h = self.trunk.features(x.flatten(0, 1)).unflatten(0, tuple(x.shape[:2]))
        return h if self.block is None else self.block(h)

    def forward(self, x: Tensor) -> Float[Tensor, "b classes"]:
        return self.head(self.views(x).mean(1))
