"""Text: tokenizers, corpora on disk, batches of windows and of packed documents."""

from wonderland.data.text.bpe import apply_merges, learn_merges, longest_first
from wonderland.data.text.grams import Grams
from wonderland.data.text.packing import Packed, PackedDocuments, pack
from wonderland.data.text.sources import Documents, read_documents
from wonderland.data.text.token_file import TokenFile, write_tokens
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.data.text.windows import IGNORED, Windows
from wonderland.data.text.word_dropout import WordDropout
from wonderland.data.text.word_features import WordFeatures
from wonderland.data.text.writer import Writer

__all__ = [
    "IGNORED",
    "Documents",
    "Grams",
    "Packed",
    "PackedDocuments",
    "TokenFile",
    "Tokenizer",
    "Windows",
    "WordDropout",
    "WordFeatures",
    "Writer",
    "apply_merges",
    "learn_merges",
    "longest_first",
    "pack",
    "read_documents",
    "write_tokens",
]
