"""Models of clips: short videos with a class or a number each."""

from wonderland.models.clip.clip_net import ClipConvNet, ClipModel, ClipSequenceNet

__all__ = ["ClipConvNet", "ClipModel", "ClipSequenceNet"]
