"""Texts as inputs of an exported model: token ids, numbers of features with their weights, or both; and what exports are tried on."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.data.ports import Feed, Port, Preprocessing, Trial

LENGTHS = (3, 12, 60)  # words
COUNT = 34
BATCHES = (1, 7, COUNT)
ODD = [
    "",
    " ",
    "!?",
    "Zürich naïve ☃ 北京",
    "\x00\ufeff",
    "a" * 500,
    "NEVER never SeEn",
    "<pad> [CLS] </s>",
    "1e308 -0.0 NaN",
]


class TextProgram(Preprocessing):
    """Token ids (rows, tokens) and features (rows, features), as `reads` of the model says: "tokens", "features" or "both"."""

    def __init__(self, reads: str, length: int, pad: int):
        tokens = Port(
            "tokens", "int64", ("rows", "tokens"), about=f"ids of tokenizer.json, at most {length}, {pad} as padding"
        )
        features = (
            Port("features", "int64", ("rows", "features"), about="numbers of the features of features.safetensors, from 1; 0 for none"),
            Port("weights", "float", ("rows", "features"), about="the weight of each feature"),
        )  # fmt: skip
        super().__init__({"tokens": (tokens,), "features": features, "both": (tokens, *features)}[reads])

    def forward(self, *values: Tensor) -> Any:
        return values


def odd_texts(words: list[str], length: int, seed: int) -> list[str]:
    """Texts of about so many words, known and unknown ones, and odd texts among them."""
    generator = np.random.default_rng(seed)
    drawn = generator.choice(np.array([*words, "unheardof", "42", "?"], object), (COUNT, length))
    texts = [" ".join(row[: generator.integers(1, length + 1)]) for row in drawn]
    return [*ODD, *texts[len(ODD) :]]


def text_trials(encoder: Any) -> Iterator[Trial]:
    """Texts of three lengths, in three batch sizes; each batch is as long as its longest row."""
    words = known_words(encoder.tokenizer)
    for seed, length in enumerate(LENGTHS):
        texts = odd_texts(words, length, seed)
        columns = len(encoder.names)
        source: Any = (
            texts if columns == 1 else [tuple(texts[(i + k) % COUNT] for k in range(columns)) for i in range(COUNT)]
        )
        yield Trial(source, [
            [text_feed(encoder, source[i : i + size]) for i in range(0, COUNT, size)] for size in BATCHES
        ])  # fmt: skip


def known_words(tokenizer: Any) -> list[str]:
    """Some tokens of the vocabulary, as texts."""
    places = np.linspace(0, tokenizer.vocab - 1, min(200, tokenizer.vocab)).astype(int)
    texts = (tokenizer.decode([int(i)]).strip() for i in places)
    return [text for text in texts if text] or ["a"]


def text_feed(encoder: Any, source: Any) -> Feed:
    """The arrays of a batch of texts."""
    dataset = encoder.open(source)
    feed: dict[str, np.ndarray] = {}
    if encoder.reads != "features":
        tokens = encoder.tokens_of(dataset.cells)
        used = (tokens != encoder.pad).any(0).nonzero()
        feed["tokens"] = tokens[:, : int(used.max()) + 1 if len(used) else 1].numpy()
    if encoder.grams is not None:
        sparse = encoder.grams.encode(dataset.cells)
        lengths = np.diff(sparse.starts)
        place = np.arange(lengths.max(initial=1))[None] < lengths[:, None]
        ids, weights = np.zeros(place.shape, np.int64), np.zeros(place.shape, np.float32)
        ids[place], weights[place] = sparse.ids + 1, sparse.values
        feed |= {"features": ids, "weights": weights}
    return feed


def feature_file(encoder: Any) -> bytes:
    """features.safetensors: the hash of each feature and its inverse document frequency."""
    from safetensors.torch import save

    tensors: dict[str, torch.Tensor] = encoder.grams.tensors()
    return save(tensors, {"pieces": str(encoder.grams.pieces).lower()})
