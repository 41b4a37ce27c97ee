"""Texts that exported models are tried on."""

import numpy as np

COUNT = 34
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


def odd_texts(words: list[str], length: int, seed: int) -> list[str]:
    """Texts of about so many words, known and unknown ones, and odd texts among them."""
    generator = np.random.default_rng(seed)
    drawn = generator.choice(np.array([*words, "unheardof", "42", "?"], object), (COUNT, length))
    texts = [" ".join(row[: generator.integers(1, length + 1)]) for row in drawn]
    return [*ODD, *texts[len(ODD) :]]
