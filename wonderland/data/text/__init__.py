"""Text: tokenizers, corpora on disk, batches of windows and of packed documents."""

from wonderland.data.text.bpe import apply_merges, learn_merges, longest_first
from wonderland.data.text.corpus import Corpus
from wonderland.data.text.corpus_encoder import CorpusEncoder
from wonderland.data.text.packing import Packed, PackedDocuments, pack
from wonderland.data.text.pairs import Pairs, PairsEncoder
from wonderland.data.text.sources import Documents, read_documents
from wonderland.data.text.text_encoder import TextEncoder
from wonderland.data.text.texts import Texts
from wonderland.data.text.token_file import TokenFile, write_tokens
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.data.text.windows import IGNORED, Windows
from wonderland.data.text.writer import Writer

__all__ = [
    "IGNORED",
    "Corpus",
    "CorpusEncoder",
    "Documents",
    "Packed",
    "PackedDocuments",
    "Pairs",
    "PairsEncoder",
    "TextEncoder",
    "Texts",
    "TokenFile",
    "Tokenizer",
    "Windows",
    "Writer",
    "apply_merges",
    "learn_merges",
    "longest_first",
    "pack",
    "read_documents",
    "write_tokens",
]
