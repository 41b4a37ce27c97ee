"""Fitted preprocessing from a file: the kind it names must be one we know."""

from typing import Any

from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.data.dataset import Encoder
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.table.encoder import TableEncoder
from wonderland.kinds.corpus.encoder import CorpusEncoder
from wonderland.kinds.pairs.pairs import PairsEncoder
from wonderland.kinds.text.encoder import TextEncoder

KINDS: dict[str, Any] = {
    "table": TableEncoder,
    "image": ImageEncoder,
    "text": TextEncoder,
    "corpus": CorpusEncoder,
    "pairs": PairsEncoder,
}


def encoder_from_json(saved: Any, tensors: dict[str, Tensor]) -> Encoder:
    """Rebuild a saved encoder of any kind; damaged or hostile content is refused in a sentence."""
    kind = saved.get("kind") if isinstance(saved, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise WonderlandError("preprocess.json is for no kind of data that is known here: it is damaged or not ours.")
    return KINDS[kind].from_json(saved, tensors)
