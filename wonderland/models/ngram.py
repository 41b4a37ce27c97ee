"""n-gram language models: counts with additive, interpolated, discounted or back-off smoothing."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError, part
from wonderland.models.tokens import check_range, check_sizes
from wonderland.models.window import Window, check_begin, check_windows

SMOOTHINGS = ("add", "interpolate", "discount", "backoff")


@part
class Ngram(Window):
    r"""The next token from counts of n-grams with n = `order`. Made by `Ngram.count(tokens, vocab, order)`.

    With c the counts, h the last n - 1 tokens and h' the same without the first, `smoothing` is one of

    .. math::
        \text{add:}\quad & p(w \mid h) = \frac{c(hw) + k}{c(h) + k V} \\
        \text{interpolate:}\quad & p(w \mid h) = \sum_n \lambda_n\, c(h_n w) / c(h_n) \\
        \text{discount:}\quad & p(w \mid h) = \frac{\max(c(hw) - d, 0) + d\, |\{w : c(hw) > 0\}|\, p(w \mid h')}{c(h)} \\
        \text{backoff:}\quad & p(w \mid h) = \frac{c(hw) - d}{c(h)} \text{ if } c(hw) > 0,
            \text{ else } \alpha(h)\, p(w \mid h')

    All are distributions. If h was never seen, "add" is uniform and the others use h'; the last h' is the uniform distribution,
    so that "discount" and "backoff" give every token a positive probability. In "interpolate" the `weights` (of the uniform
    distribution, then of each order up to the highest) are renormalised over the orders whose h was seen.

    `entries` is the number of different n-grams of each order, set by `count`. The logits are log-probabilities, minus infinity
    for tokens of probability 0. Shapes: tokens (b, t) -> logits (b, t, vocab).
    Book: D2L 9.3; makemore, part 1. Papers: Jelinek and Mercer, 1980; Katz, 1987; Ney et al., 1994.

    >>> model = Ngram.count(torch.tensor([0, 1, 2, 1, 2, 2]), vocab=3, order=2, k=0)
    >>> model(torch.tensor([[1, 2]])).exp()
    tensor([[[0.0000, 0.0000, 1.0000],
             [0.0000, 0.5000, 0.5000]]])
    """

    def __init__(
        self,
        vocab: int,
        order: int = 2,
        *,
        entries: Sequence[int] | None = None,
        smoothing: str = "add",
        k: float | int = 1.0,
        discount: float | int = 0.75,
        weights: Sequence[float | int] | None = None,
        begin: int = 0,
    ):
        super().__init__()
        check_sizes("Ngram", vocab=vocab, order=order)
        check_begin(begin, vocab, "Ngram")
        if vocab**order >= 2**62:
            raise WonderlandError(
                f"{order}-grams of {vocab:,} tokens cannot be numbered in 62 bits: choose a lower order or fewer tokens."
            )
        if smoothing not in SMOOTHINGS:
            raise WonderlandError(f"Ngram has no smoothing {smoothing!r}: choose one of {', '.join(SMOOTHINGS)}.")
        if not k >= 0 or not 0 < discount < 1:
            raise WonderlandError(
                f"Ngram takes a k of at least 0 and a discount between 0 and 1, not {k} and {discount}."
            )
        entries = [0] * order if entries is None else list(entries)
        if len(entries) != order or min(entries) < 0:
            raise WonderlandError(f"Ngram takes the number of entries of each of its {order} orders, not {entries}.")
        weights = [1.0] * (order + 1) if weights is None else [float(weight) for weight in weights]
        if len(weights) != order + 1 or min(weights) < 0 or not sum(weights) > 0:
            raise WonderlandError(
                f"Ngram takes {order + 1} weights of at least 0, for the uniform distribution and each order: not {weights}."
            )
        # Even unigrams, which read no token, need a window of at least one.
        self.vocab, self.order, self.window, self.begin = vocab, order, max(order - 1, 1), begin
        self.smoothing, self.k, self.discount, self.weights = smoothing, float(k), float(discount), weights
        for n, size in enumerate(entries, 1):
            self.register_buffer(f"grams_{n}", torch.zeros(size, dtype=torch.int64))
            self.register_buffer(f"counts_{n}", torch.zeros(size, dtype=torch.int64))

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        # Counts have no gradients, and probabilities may be 0.
        broken = (laws.gradients, laws.finiteness, laws.compiles)
        return tuple(law for law in super().laws() if law not in broken)

    @staticmethod
    def count(texts: Any, vocab: int, order: int = 2, **options: Any) -> "Ngram":
        """The model of the n-grams of a text (n,), or of several texts, each padded with `begin` on the left.

        >>> Ngram.count([torch.tensor([1, 0]), torch.tensor([2, 0])], vocab=3, order=2).counts_2
        tensor([1, 1, 1, 1])
        """
        model = Ngram(vocab, order, **options)
        texts = [texts] if isinstance(texts, Tensor) else list(texts)
        if not texts or not any(len(text) for text in texts):
            raise WonderlandError("Ngram.count needs at least one token.")
        for text in texts:
            if not isinstance(text, Tensor) or text.dim() != 1 or text.dtype not in (torch.int64, torch.int32):
                raise WonderlandError("Ngram.count takes texts as tensors (n,) of integers.")
            if len(text):
                check_range(text.unsqueeze(0), vocab)
        before = torch.full((order - 1,), model.begin, dtype=torch.int64)
        for n in range(1, order + 1):
            pieces = [torch.cat([before[: n - 1], text.long()]).unfold(0, n, 1) for text in texts if len(text)]
            grams, counts = model._code(torch.cat(pieces)).unique(return_counts=True)
            setattr(model, f"grams_{n}", grams)
            setattr(model, f"counts_{n}", counts)
        return model

    @property
    def entries(self) -> list[int]:
        """The number of different n-grams of each order."""
        return [len(getattr(self, f"grams_{n}")) for n in range(1, self.order + 1)]

    def predict(self, windows: Tensor) -> Tensor:
        check_windows(windows, self.window, "Ngram")
        return self.probabilities(windows).log().to(torch.get_default_dtype())

    def probabilities(self, windows: Tensor) -> Tensor:
        """The distribution (n, vocab) of the token after each window (n, window), in float64."""
        history = windows[:, self.window - self.order + 1 :]
        if self.smoothing == "add":
            counts = self._followers(history)
            total = counts.sum(1, keepdim=True) + self.k * self.vocab
            return torch.where(total > 0, (counts + self.k) / total.clamp(min=1e-300), 1 / self.vocab)
        lower = torch.full((len(windows), self.vocab), 1 / self.vocab, dtype=torch.float64, device=windows.device)
        if self.smoothing == "interpolate":
            return self._interpolated(history, lower)
        for n in range(1, self.order + 1):
            counts = self._followers(history[:, self.order - n :])
            total, distinct = counts.sum(1, keepdim=True), (counts > 0).sum(1, keepdim=True)
            discounted = (counts - self.discount).clamp(min=0)
            reserved = self.discount * distinct / total.clamp(min=1)
            if self.smoothing == "backoff":
                unseen = lower.masked_fill(counts > 0, 0)
                mass = unseen.sum(1, keepdim=True)
                # If every token was seen there is no unseen one to receive the reserved mass, so nothing is discounted.
                discounted, reserved = torch.where(mass > 0, discounted, counts), torch.where(mass > 0, reserved, 0)
                higher = discounted / total.clamp(min=1) + reserved * unseen / mass.clamp(min=1e-300)
            else:
                higher = discounted / total.clamp(min=1) + reserved * lower
            lower = torch.where(total > 0, higher, lower)
        return lower

    def _interpolated(self, history: Tensor, uniform: Tensor) -> Tensor:
        mixture, weight = self.weights[0] * uniform, torch.full_like(uniform[:, :1], self.weights[0])
        for n in range(1, self.order + 1):
            counts = self._followers(history[:, self.order - n :])
            total = counts.sum(1, keepdim=True)
            mixture = mixture + self.weights[n] * counts / total.clamp(min=1)
            weight = weight + self.weights[n] * (total > 0)
        return torch.where(weight > 0, mixture / weight.clamp(min=1e-300), uniform)

    def _followers(self, history: Tensor) -> Tensor:
        """How often each token followed each history: (m, n - 1) -> (m, vocab)."""
        n = history.shape[1] + 1
        grams, counts = getattr(self, f"grams_{n}"), getattr(self, f"counts_{n}")
        first = self._code(history) * self.vocab
        # n-grams are sorted, so those with the same history are consecutive.
        start, end = torch.searchsorted(grams, first), torch.searchsorted(grams, first + self.vocab)
        sizes = end - start
        # The meta device has no values: one entry for each row stands for however many there are.
        row = torch.repeat_interleave(sizes, output_size=len(sizes) if sizes.is_meta else None)
        index = torch.arange(len(row), device=row.device) - (sizes.cumsum(0) - sizes)[row] + start[row]
        followers = torch.zeros(len(history), self.vocab, dtype=torch.float64, device=history.device)
        followers[row, grams[index] % self.vocab] = counts[index].double()
        return followers

    def _code(self, grams: Tensor) -> Tensor:
        """Each row (m, n) of tokens as one integer, in base vocab."""
        code = torch.zeros(len(grams), dtype=torch.int64, device=grams.device)
        for column in grams.unbind(1):
            code = code * self.vocab + column
        return code
