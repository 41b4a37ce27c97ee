"""Perplexity and bits per byte."""

import math

from wonderland.core import WonderlandError


def perplexity(nats: float | int) -> float:
    """Perplexity from the loss in nats per token: its exponential. Book: D2L 9.3.

    >>> round(perplexity(math.log(4)), 12)
    4.0
    """
    loss = _loss(nats, "perplexity")
    return math.exp(loss) if loss < 700 else math.inf


def bits_per_byte(nats: float | int, tokens: int, size: int) -> float:
    r"""Bits per byte of text: unlike perplexity comparable between tokenizers.

    .. math:: \frac{\text{nats per token} \cdot \text{tokens}}{\text{bytes} \cdot \ln 2}

    >>> bits_per_byte(math.log(256), tokens=10, size=10)
    8.0
    """
    if tokens < 1 or size < 1:
        raise WonderlandError(
            f"bits_per_byte takes a text of at least one token and one byte, not {tokens} and {size}."
        )
    return _loss(nats, "bits_per_byte") * tokens / size / math.log(2)


def _loss(nats: float | int, name: str) -> float:
    if not nats >= 0:
        raise WonderlandError(f"{name} takes a loss of at least 0 nats per token, not {nats}.")
    return float(nats)
