"""Text: tokenizers, corpora on disk, batches of windows and of packed documents."""

from wonderland.data.text.bpe import apply_merges, learn_merges, longest_first
from wonderland.kinds.corpus.corpus import Corpus
from wonderland.kinds.corpus.encoder import CorpusEncoder
from wonderland.data.text.packing import Packed, PackedDocuments, pack
from wonderland.kinds.pairs.pairs import Pairs, PairsEncoder
from wonderland.data.text.sources import Documents, read_documents
from wonderland.kinds.text.encoder import TextEncoder
from wonderland.kinds.text.texts import Texts
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
