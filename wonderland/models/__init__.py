"""Named architectures, each a short file built from nn."""

from wonderland.models.convnet import ConvNet
from wonderland.models.tablenet import TableNet

__all__ = ["ConvNet", "TableNet"]
