"""From files to batches: readers, splits, batches, augmentation: what kinds of data share."""

from wonderland.data.augment import Augment
from wonderland.data.batches import Batches
from wonderland.data.bundled import BUNDLED
from wonderland.data.columns import Column
from wonderland.data.crop_augment import CropAugment
from wonderland.data.dataset import Dataset, Finding
from wonderland.data.encoder import Encoder, Field, RowEncoder
from wonderland.data.examples import Examples, RowExamples
from wonderland.data.image_tokens import ImageTokens
from wonderland.data.mixing import cutmix, mixup, soft_labels
from wonderland.data.order import Importance, curriculum, importance_sample
from wonderland.data.photo_augment import PhotoAugment, averaged
from wonderland.data.sound_augment import MelAugment, WaveAugment
from wonderland.data.source import Contents, Glimpse
from wonderland.data.split import PARTS, Parts, Split, split
from wonderland.data.text import (
    Documents,
    Grams,
    PackedDocuments,
    TokenFile,
    Tokenizer,
    Windows,
    WordDropout,
    read_documents,
    write_tokens,
)
from wonderland.data.views import several_views

__all__ = [
    "BUNDLED",
    "PARTS",
    "Augment",
    "Batches",
    "Column",
    "Contents",
    "CropAugment",
    "Dataset",
    "Documents",
    "Encoder",
    "Examples",
    "Field",
    "Finding",
    "Glimpse",
    "Grams",
    "ImageTokens",
    "Importance",
    "MelAugment",
    "PackedDocuments",
    "Parts",
    "PhotoAugment",
    "RowEncoder",
    "RowExamples",
    "Split",
    "TokenFile",
    "Tokenizer",
    "WaveAugment",
    "Windows",
    "WordDropout",
    "averaged",
    "curriculum",
    "cutmix",
    "importance_sample",
    "mixup",
    "read_documents",
    "several_views",
    "soft_labels",
    "split",
    "write_tokens",
]
