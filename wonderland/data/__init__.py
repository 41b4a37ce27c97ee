"""From files to batches: tables, images, text, and the four parts they are cut into."""

from wonderland.data.augment import Augment
from wonderland.data.batches import Batches
from wonderland.data.bundled import BUNDLED
from wonderland.data.columns import Column
from wonderland.data.dataset import Dataset, Encoder, Finding
from wonderland.data.encoders import encoder_from_json
from wonderland.kinds.image.encoder import ImageEncoder
from wonderland.kinds.image.images import Images
from wonderland.data.mixing import cutmix, mixup, soft_labels
from wonderland.kinds.open import open
from wonderland.data.order import Importance, curriculum, importance_sample
from wonderland.data.split import Split, split
from wonderland.kinds.table.table import Table
from wonderland.kinds.table.encoder import TableEncoder
from wonderland.data.text import (
    Corpus,
    CorpusEncoder,
    Documents,
    PackedDocuments,
    Pairs,
    PairsEncoder,
    TextEncoder,
    Texts,
    TokenFile,
    Tokenizer,
    Windows,
    read_documents,
    write_tokens,
)

__all__ = [
    "BUNDLED",
    "Augment",
    "Batches",
    "Column",
    "Corpus",
    "CorpusEncoder",
    "Dataset",
    "Documents",
    "Encoder",
    "Finding",
    "ImageEncoder",
    "Images",
    "Importance",
    "PackedDocuments",
    "Pairs",
    "PairsEncoder",
    "Split",
    "Table",
    "TableEncoder",
    "TextEncoder",
    "Texts",
    "TokenFile",
    "Tokenizer",
    "Windows",
    "curriculum",
    "cutmix",
    "encoder_from_json",
    "importance_sample",
    "mixup",
    "open",
    "read_documents",
    "soft_labels",
    "split",
    "write_tokens",
]
