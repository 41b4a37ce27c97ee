"""The kinds of tokens: how a text is cut, and how a vocabulary of each kind is learned with the `tokenizers` package."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, need

KINDS = ("characters", "words", "bpe", "wordpiece", "unigram")
BYTES = 256
POINTS = 0x110000


def package() -> Any:
    """The `tokenizers` package, or a line that says how to get it."""
    return need("tokenizers", extra="text", why="to cut text into tokens")


def learn(kind: str, texts: Iterable[str], vocab: int, specials: Sequence[str], lowercase: bool) -> Any:
    """A tokenizer of the package, trained on texts."""
    base = package()
    if kind == "characters":
        made = _characters(base, texts, vocab, specials, lowercase)
    else:
        made = MAKERS[kind](base)
        if lowercase and kind != "wordpiece":
            made.normalizer = base.normalizers.Lowercase()
        if kind == "wordpiece":
            made.normalizer = base.normalizers.BertNormalizer(lowercase=lowercase)
        made.train_from_iterator(_bounded(texts), _trainer(base, kind, vocab, specials))
    made.add_special_tokens(list(specials))
    return made


def _bounded(texts: Iterable[str], longest: int = 1 << 20) -> Iterator[str]:
    """Texts in pieces that a trainer can hold."""
    for text in texts:
        if not isinstance(text, str):
            raise WonderlandError(
                f"A tokenizer is trained on texts, and {text!r:.60} is of type {type(text).__name__}."
            )
        for start in range(0, len(text), longest):
            yield text[start : start + longest]


def _trainer(base: Any, kind: str, vocab: int, specials: Sequence[str]) -> Any:
    common = {"vocab_size": vocab, "special_tokens": list(specials), "show_progress": False}
    alphabet = base.pre_tokenizers.ByteLevel.alphabet()
    if kind == "words":
        return base.trainers.WordLevelTrainer(**common)
    if kind == "wordpiece":
        return base.trainers.WordPieceTrainer(**common, continuing_subword_prefix="##", limit_alphabet=vocab // 2)
    if kind == "bpe":
        return base.trainers.BpeTrainer(**common, initial_alphabet=alphabet)
    return base.trainers.UnigramTrainer(**common, initial_alphabet=alphabet)


def _bpe(base: Any) -> Any:
    """Pairs of bytes, joined by frequency: every text can be written, nothing is unknown."""
    made = base.Tokenizer(base.models.BPE())
    made.pre_tokenizer = base.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = base.decoders.ByteLevel()
    return made


def _unigram(base: Any) -> Any:
    """Pieces with probabilities, over bytes as well."""
    made = base.Tokenizer(base.models.Unigram())
    made.pre_tokenizer = base.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = base.decoders.ByteLevel()
    return made


def _words(base: Any) -> Any:
    """Runs of letters and digits, runs of signs; what lies between is a space when it is written again."""
    made = base.Tokenizer(base.models.WordLevel(unk_token="<unk>"))
    made.pre_tokenizer = base.pre_tokenizers.Whitespace()
    return made


def _wordpiece(base: Any) -> Any:
    """Words, then pieces of words that continue with ##."""
    made = base.Tokenizer(base.models.WordPiece(unk_token="<unk>", max_input_chars_per_word=200))
    made.pre_tokenizer = base.pre_tokenizers.BertPreTokenizer()
    made.decoder = base.decoders.WordPiece(prefix="##", cleanup=False)
    return made


MAKERS: dict[str, Callable[[Any], Any]] = {"bpe": _bpe, "unigram": _unigram, "words": _words, "wordpiece": _wordpiece}


def _characters(base: Any, texts: Iterable[str], vocab: int, specials: Sequence[str], lowercase: bool) -> Any:
    """Single characters: byte pair encoding that joins nothing, over the most frequent ones, in order of code point."""
    seen = np.zeros(POINTS, np.int64)
    for text in _bounded(texts):
        found = np.bincount(code_points(text.lower() if lowercase else text))
        seen[: len(found)] += found
    kept = np.flatnonzero(seen)
    room = max(0, vocab - len(specials))
    if len(kept) > room:
        kept = np.sort(kept[np.argsort(-seen[kept], kind="stable")][:room])
    letters = [chr(point) for point in kept if chr(point) not in specials]
    ids = {token: i for i, token in enumerate([*specials, *letters])}
    made = base.Tokenizer(base.models.BPE(ids, [], unk_token="<unk>" if "<unk>" in ids else None))
    if lowercase:
        made.normalizer = base.normalizers.Lowercase()
    made.decoder = base.decoders.Fuse()
    return made


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
