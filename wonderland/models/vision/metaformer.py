"""MetaFormer: the transformer's skeleton for images, with anything that mixes in the slot of attention."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import Spec, part, published
from wonderland.models.encoder_decoder import with_direction
from wonderland.models.vision.image_model import ImageModel, Numbers, linear_head
from wonderland.models.vision.resnet import check_stages
from wonderland.nn.contract.arguments import Checked
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.vision.map_pooling import MapPooling


@part
class MetaFormer(ImageModel):
    r"""Stages of blocks, a token mixer and an MLP at each pixel, both beside shortcuts, with convolutions between that halve.

    .. math:: h \leftarrow h + \gamma_1 \odot \mathrm{mixer}(\mathrm{norm}(h)), \qquad
        h \leftarrow h + \gamma_2 \odot \mathrm{MLP}(\mathrm{norm}(h))

    `mixer` is any mixer of sequences, which reads the map row after row, or `nn.MapPooling` (PoolFormer, the default); a
    list has one for each stage. Norms are over the whole map (group norm with one group).

    Shapes: x (b, channels, h, w) -> (b, classes). Book: Alice 11.3. Paper: Yu et al., 2022.

    >>> from wonderland.nn import Attention, Fourier
    >>> net = MetaFormer(10, depths=[1, 1], dims=[8, 16], mixer=[Fourier.spec(), Attention.spec(heads=2)])
    >>> net(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    takes_specs = True

    def __init__(
        self, classes: int = 1000, channels: int = 3, *, depths: Sequence[int] = (2, 2, 6, 2),
        dims: Sequence[int] = (64, 128, 320, 512), mixer: Spec | list[Spec] | None = None, expansion: int = 4,
        layer_scale: float | int = 1e-5, mean: Numbers = None, std: Numbers = None,
    ):  # fmt: skip
        super().__init__(classes, channels, mean, std)
        check_stages("MetaFormer", depths, dims)
        mixers = mixer if isinstance(mixer, list | tuple) else [MapPooling.spec() if mixer is None else mixer]
        self.smallest = 3
        downs, stages, dim = [], [], channels
        for index, (depth, out) in enumerate(zip(depths, dims, strict=True)):
            downs.append(nn.Conv2d(dim, out, 3, 2, 1) if index else nn.Conv2d(dim, out, 7, 4, 2))
            spec = mixers[index % len(mixers)]
            stages.append(nn.Sequential(*(MapBlock(out, spec, expansion, layer_scale) for _ in range(depth))))
            dim = out
        self.downs, self.stages = nn.ModuleList(downs), nn.ModuleList(stages)
        self.norm = nn.GroupNorm(1, dim)
        self.head = linear_head(dim, classes)

    @classmethod
    @published
    def poolformer_s12(cls, **more: Any):
        """PoolFormer-S12, 11,915,176 parameters."""
        return cls(**{"depths": [2, 2, 6, 2], "dims": [64, 128, 320, 512], **more})

    @classmethod
    @published
    def poolformer_s24(cls, **more: Any):
        """PoolFormer-S24, 21,388,968 parameters."""
        return cls(**{"depths": [4, 4, 12, 4], "dims": [64, 128, 320, 512], **more})

    def maps(self, x: Tensor) -> Tensor:
        x = self.read(x)
        for down, stage in zip(self.downs, self.stages, strict=True):
            x = stage(down(x))
        return self.norm(x)


class MapBlock(Checked, nn.Module):
    """One block of a MetaFormer: (b, dim, h, w) -> (b, dim, h, w)."""

    no_decay = frozenset({"mixer_scale", "channel_scale"})

    def __init__(self, dim: int, mixer: Spec, expansion: int, layer_scale: float | int):
        super().__init__()
        self.mixer: Any = with_direction(mixer, causal=False).build(dim=dim)
        self.norms = nn.ModuleList([nn.GroupNorm(1, dim), nn.GroupNorm(1, dim)])
        self.inward, self.outward = nn.Conv2d(dim, expansion * dim, 1), nn.Conv2d(expansion * dim, dim, 1)
        self.mixer_scale = nn.Parameter(torch.full((dim, 1, 1), float(layer_scale)))
        self.channel_scale = nn.Parameter(torch.full((dim, 1, 1), float(layer_scale)))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mixer_scale * self.mix(self.norms[0](x))
        return x + self.channel_scale * self.outward(F.gelu(self.inward(self.norms[1](x))))

    def mix(self, x: Tensor) -> Tensor:
        """The map mixed: as a sequence of pixels for mixers of sequences."""
        if not isinstance(self.mixer, Mixer):
            return self.mixer(x)
        return self.mixer(x.flatten(2).transpose(1, 2)).transpose(1, 2).unflatten(2, x.shape[2:])
