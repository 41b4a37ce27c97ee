"""What families of networks of images share: their heads, and the published names of convolutions with batch norm."""

from collections.abc import Callable
from typing import Any

from torch import nn

from wonderland.checkpoints.families.family import Published
from wonderland.checkpoints.families.options import Options


def image_heads(name: str) -> dict[str, str]:
    """The architectures of a family: with a head for classes of images, and without."""
    return {f"{name}ForImageClassification": "image", f"{name}Model": "trunk"}


def image_classes(options: Options, head: str) -> int:
    """The number of classes; 0 for a network without a head."""
    return options.classes if head == "image" else 0


def head_names(name: str) -> Callable[[Any, str], dict[str, Published]]:
    """The published name of the linear layer at the end."""
    return lambda model, head: {"head.*": Published(name)} if isinstance(model.head, nn.Linear) else {}


def conv_norm(ours: str, theirs: str) -> dict[str, Published | None]:
    """A convolution with batch norm."""
    return {
        f"{ours}.conv.*": Published(f"{theirs}.convolution.*"),
        f"{ours}.norm.*": Published(f"{theirs}.normalization.*"),
    }
