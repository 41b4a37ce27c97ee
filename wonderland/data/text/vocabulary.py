"""Vocabularies of each kind of token (characters, words, bpe, ...), learned with the `tokenizers` package."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, need

TOKEN_KINDS = ("characters", "words", "bpe", "wordpiece", "unigram")
BYTES = 256
CODE_POINTS = 0x110000
_LONG_RUN = re.compile(r"\S{257}|\s{257}")
_PIECES = re.compile(r"\s{0,256}\S{1,256}|\s{1,256}")


def tokenizers_package() -> Any:
    """The `tokenizers` package; where it is missing, an error that says how to install it."""
    return need("tokenizers", extra="text", why="to cut text into tokens")


def learn_vocabulary(kind: str, texts: Iterable[str], vocab: int, specials: Sequence[str], lowercase: bool) -> Any:
    """A tokenizer of the `tokenizers` package, trained on texts."""
    package = tokenizers_package()
    if kind == "characters":
        tokenizer = _characters(package, texts, vocab, specials, lowercase)
    else:
        tokenizer = _UNTRAINED[kind](package)
        if lowercase and kind != "wordpiece":
            tokenizer.normalizer = package.normalizers.Lowercase()
        if kind == "wordpiece":
            tokenizer.normalizer = package.normalizers.BertNormalizer(lowercase=lowercase)
        tokenizer.train_from_iterator(_bounded(texts), _trainer(package, kind, vocab, specials))
    tokenizer.add_special_tokens(list(specials))
    return tokenizer


def _bounded(texts: Iterable[str], longest: int = 1 << 20) -> Iterator[str]:
    """Texts in pieces of at most `longest` characters, to bound the memory of the trainer, without words or gaps of more than
    256 characters, to bound its time, which grows with the square of the longest word."""
    for text in texts:
        if not isinstance(text, str):
            raise WonderlandError(
                f"A tokenizer is trained on texts, and {text!r:.60} is of type {type(text).__name__}."
            )
        for start in range(0, len(text), longest):
            piece = text[start : start + longest]
            if _LONG_RUN.search(piece):
                yield from _PIECES.findall(piece)
            else:
                yield piece


def _trainer(package: Any, kind: str, vocab: int, specials: Sequence[str]) -> Any:
    common = {"vocab_size": vocab, "special_tokens": list(specials), "show_progress": False}
    alphabet = package.pre_tokenizers.ByteLevel.alphabet()
    if kind == "words":
        return package.trainers.WordLevelTrainer(**common)
    if kind == "wordpiece":
        return package.trainers.WordPieceTrainer(**common, continuing_subword_prefix="##", limit_alphabet=vocab // 2)
    if kind == "bpe":
        return package.trainers.BpeTrainer(**common, initial_alphabet=alphabet)
    return package.trainers.UnigramTrainer(**common, initial_alphabet=alphabet)


def _bpe(package: Any) -> Any:
    """Byte-level byte pair encoding: every text can be written, nothing is unknown."""
    tokenizer = package.Tokenizer(package.models.BPE())
    tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = package.decoders.ByteLevel()
    return tokenizer


def _unigram(package: Any) -> Any:
    """Byte-level unigram language model: pieces with probabilities."""
    tokenizer = package.Tokenizer(package.models.Unigram())
    tokenizer.pre_tokenizer = package.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = package.decoders.ByteLevel()
    return tokenizer


def _words(package: Any) -> Any:
    """Runs of letters and digits, and runs of punctuation; any whitespace between them is decoded as one space."""
    tokenizer = package.Tokenizer(package.models.WordLevel(unk_token="<unk>"))
    tokenizer.pre_tokenizer = package.pre_tokenizers.Whitespace()
    return tokenizer


def _wordpiece(package: Any) -> Any:
    """Words, then pieces of words that continue with ##."""
    tokenizer = package.Tokenizer(package.models.WordPiece(unk_token="<unk>", max_input_chars_per_word=200))
    tokenizer.pre_tokenizer = package.pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = package.decoders.WordPiece(prefix="##", cleanup=False)
    return tokenizer


_UNTRAINED: dict[str, Callable[[Any], Any]] = {
    "bpe": _bpe,
    "unigram": _unigram,
    "words": _words,
    "wordpiece": _wordpiece,
}


def _characters(package: Any, texts: Iterable[str], vocab: int, specials: Sequence[str], lowercase: bool) -> Any:
    """Single characters: byte pair encoding without merges, over the most frequent characters, in order of code point."""
    counts_of_points = np.zeros(CODE_POINTS, np.int64)
    for text in _bounded(texts):
        counts = np.bincount(code_points(text.lower() if lowercase else text))
        counts_of_points[: len(counts)] += counts
    points = np.flatnonzero(counts_of_points)
    largest = max(0, vocab - len(specials))
    if len(points) > largest:
        points = np.sort(points[np.argsort(-counts_of_points[points], kind="stable")][:largest])
    letters = [chr(point) for point in points if chr(point) not in specials]
    ids = {token: i for i, token in enumerate([*specials, *letters])}
    tokenizer = package.Tokenizer(package.models.BPE(ids, [], unk_token="<unk>" if "<unk>" in ids else None))
    if lowercase:
        tokenizer.normalizer = package.normalizers.Lowercase()
    tokenizer.decoder = package.decoders.Fuse()
    return tokenizer


def code_points(text: str) -> np.ndarray:
    """The code point of every character; half of a character (a lone surrogate) is refused.

    >>> code_points("aé").tolist()
    [97, 233]
    """
    try:
        return np.frombuffer(text.encode("utf-32-le"), "<u4").astype(np.int64)
    except UnicodeEncodeError as error:
        raise WonderlandError(
            f"The text holds half of a character (a lone surrogate) at position {error.start}: it is damaged."
        ) from error
