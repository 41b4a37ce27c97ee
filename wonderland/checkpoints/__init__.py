"""Published weights: a checkpoint folder of the transformers library to a model with equal outputs, and back."""

from typing import TYPE_CHECKING

from wonderland.core.lazy import lazy_attributes

if TYPE_CHECKING:
    from wonderland.checkpoints.efficientnet_lite import load_efficientnet_lite
    from wonderland.checkpoints.families import from_gpt2, from_mamba, from_rwkv
    from wonderland.checkpoints.load import load_classifier, load_pretrained
    from wonderland.checkpoints.outlines import Outline, outline
    from wonderland.checkpoints.save import save_pretrained
    from wonderland.checkpoints.torch_archive import read_torch_archive

# An unknown family is refused within the time that starting Python takes, so torch is loaded at the first use of a name.
_PLACES = {
    "Outline": "outlines",
    "from_gpt2": "families",
    "from_mamba": "families",
    "from_rwkv": "families",
    "load_classifier": "load",
    "load_efficientnet_lite": "efficientnet_lite",
    "load_pretrained": "load",
    "outline": "outlines",
    "read_torch_archive": "torch_archive",
    "save_pretrained": "save",
}
__getattr__, __dir__ = lazy_attributes(__name__, {name: f"{__name__}.{place}" for name, place in _PLACES.items()})

__all__ = [
    "Outline",
    "from_gpt2",
    "from_mamba",
    "from_rwkv",
    "load_classifier",
    "load_efficientnet_lite",
    "load_pretrained",
    "outline",
    "read_torch_archive",
    "save_pretrained",
]
