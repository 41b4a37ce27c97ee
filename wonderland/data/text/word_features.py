"""Features of single words for taggers: the word, its beginnings and endings, and its shape; as numbers of a fixed table."""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError

PAD, UNKNOWN = 0, 1  # numbers that stand for no word, and for a feature that training never saw
PER_WORD = 12
LONGEST_WORD = 60
MOST_FEATURES = 1_000_000
MANY_WORDS = 2000
_RUNS = re.compile(r"(.)\1+")


def shape_of(word: str) -> str:
    """Letters as X or x, digits as 0, other signs as they are.

    >>> shape_of("Ab-12c")
    'Xx-00x'
    """
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word)


def features_of(word: str) -> list[str]:
    """The features of a word, `PER_WORD` of them; the first two are the word itself.

    >>> features_of("Lewis")[:4], features_of("Lewis")[-2:]
    (['w=Lewis', 'l=lewis', 'p1=l', 'p2=le'], ['s=Xxxxx', 'r=Xx'])
    """
    word = word[:LONGEST_WORD]
    low, shape = word.lower(), shape_of(word)
    short = re.sub(r"\d", "0", low)
    edges = [f"p{n}={short[:n]}" for n in (1, 2, 3, 4)] + [f"e{n}={short[-n:]}" for n in (1, 2, 3, 4)]
    runs = _RUNS.sub(r"\1", shape)
    return [f"w={word}", f"l={low}", *edges, f"s={shape}", f"r={runs}"]


class WordFeatures:
    """Numbers for the features of words, known by a hash of 64 bits: `keys` (f,) in order; feature i has the number i + 2.

    >>> known = WordFeatures.fit([["Alice", "ran"], ["Alice"]])
    >>> known.encode(["Alice", "sat"]).shape, known.encode(["sat"])[0, :2].tolist()
    ((2, 12), [1, 1])
    """

    def __init__(self, keys: np.ndarray):
        self.keys = keys
        self._seen: dict[str, np.ndarray] = {}

    @classmethod
    def fit(cls, sentences: Iterable[Sequence[str]]) -> "WordFeatures":
        """The features of the words of training sentences; in many of them, those of one word alone count as unknown."""
        words = Counter(word for sentence in sentences for word in sentence)
        counts: Counter[str] = Counter()
        for word, count in words.items():
            for feature in features_of(word):
                counts[feature] += count
        least = 2 if words.total() >= MANY_WORDS else 1
        return cls(np.unique(_hashes(feature for feature, count in counts.items() if count >= least))[:MOST_FEATURES])

    def __len__(self) -> int:
        """How many numbers there are, those of padding and of unknown features included."""
        return len(self.keys) + 2

    def encode(self, words: Sequence[str]) -> np.ndarray:
        """Numbers of the features of words: (n, PER_WORD)."""
        new = list({word for word in words if word not in self._seen})
        if new:
            hashes = _hashes([feature for word in new for feature in features_of(word)])
            place = np.searchsorted(self.keys, hashes)
            known = self.keys[np.minimum(place, len(self.keys) - 1)] == hashes
            numbers = np.where(known, place + 2, UNKNOWN).astype(np.int32).reshape(-1, PER_WORD)
            self._seen.update(zip(new, numbers, strict=True))
        features = np.stack([self._seen[word] for word in words]) if len(words) else np.zeros((0, PER_WORD), np.int32)
        if len(self._seen) > 500_000:  # a bound on memory
            self._seen.clear()
        return features

    def tensors(self) -> dict[str, Tensor]:
        """The table, to be saved."""
        return {"keys": torch.from_numpy(self.keys.view(np.int64).copy())}

    @classmethod
    def read(cls, tensors: Any) -> "WordFeatures":
        """From `tensors`; anything else is refused."""
        keys = tensors.get("keys") if isinstance(tensors, dict) else None
        if (
            isinstance(keys, Tensor)
            and keys.dtype == torch.int64
            and keys.dim() == 1
            and 0 < len(keys) <= MOST_FEATURES
        ):
            numbers = keys.numpy().copy().view(np.uint64)
            if bool((numbers[1:] > numbers[:-1]).all()):
                return cls(numbers)
        raise WonderlandError("preprocess.safetensors does not hold features of words: it is damaged or not ours.")


def _hashes(features: Iterable[str]) -> np.ndarray:
    digests = b"".join(
        hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest() for feature in features
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)
