"""n-grams: what followed these words in the text that was read, counted; and what to do where nothing was."""

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
    r"""The next token by counts of what followed the last `order` - 1. Made by `Ngram.count(tokens, vocab, order)`.

    With c the counts, h the tokens before and h' the same without the first, `smoothing` is one of

    .. math::
        \text{add:}\quad & p(w \mid h) = \frac{c(hw) + k}{c(h) + k V} \\
        \text{interpolate:}\quad & p(w \mid h) = \sum_n \lambda_n\, c(h_n w) / c(h_n) \\
        \text{discount:}\quad & p(w \mid h) = \frac{\max(c(hw) - d, 0) + d\, |\{w : c(hw) > 0\}|\, p(w \mid h')}{c(h)} \\
        \text{backoff:}\quad & p(w \mid h) = \frac{c(hw) - d}{c(h)} \text{ if } c(hw) > 0,
            \text{ else } \alpha(h)\, p(w \mid h')

    All are distributions. Where h was never seen "add" is uniform and the others ask h'; before all of them stands the
    uniform distribution, so that "discount" and "backoff" give every token a chance. In "interpolate" the weights (`weights`,
    from the shortest n-gram, uniform first, to the longest) go to what was seen, in proportion.

    `entries` says how many different n-grams of each order are held; `count` finds it. The logits are log-probabilities;
    tokens without a chance have minus infinity. Shapes: tokens (b, t) -> logits (b, t, vocab).
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
        # A window of one token is read even by single words, which look at none.
        self.vocab, self.order, self.window, self.begin = vocab, order, max(order - 1, 1), begin
        self.smoothing, self.k, self.discount, self.weights = smoothing, float(k), float(discount), weights
        for n, size in enumerate(entries, 1):
            self.register_buffer(f"grams_{n}", torch.zeros(size, dtype=torch.int64))
            self.register_buffer(f"counts_{n}", torch.zeros(size, dtype=torch.int64))

    def laws(self) -> tuple[Callable[..., Any], ...]:
        from wonderland import laws

        # Nothing in it has a gradient, and what was never seen may have no chance at all.
        lost = (laws.gradients, laws.finiteness, laws.compiles)
        return tuple(law for law in super().laws() if law not in lost)

    @staticmethod
    def count(texts: Any, vocab: int, order: int = 2, **how: Any) -> "Ngram":
        """A model of the n-grams of a text (n,), or of several, each after `begin`.

        >>> Ngram.count([torch.tensor([1, 0]), torch.tensor([2, 0])], vocab=3, order=2).counts_2
        tensor([1, 1, 1, 1])
        """
        model = Ngram(vocab, order, **how)
        several = [texts] if isinstance(texts, Tensor) else list(texts)
        if not several or not any(len(text) for text in several):
            raise WonderlandError("Ngram counts at least one token, and there is none.")
        for text in several:
            if not isinstance(text, Tensor) or text.dim() != 1 or text.dtype not in (torch.int64, torch.int32):
                raise WonderlandError("Ngram counts texts as tensors (n,) of whole numbers.")
            if len(text):
                check_range(text.unsqueeze(0), vocab)
        before = torch.full((order - 1,), model.begin, dtype=torch.int64)
        for n in range(1, order + 1):
            pieces = [torch.cat([before[: n - 1], text.long()]).unfold(0, n, 1) for text in several if len(text)]
            grams, counts = model._code(torch.cat(pieces)).unique(return_counts=True)
            setattr(model, f"grams_{n}", grams)
            setattr(model, f"counts_{n}", counts)
        return model

    @property
    def entries(self) -> list[int]:
        """How many different n-grams of each order are held."""
        return [len(getattr(self, f"grams_{n}")) for n in range(1, self.order + 1)]

    def predict(self, windows: Tensor) -> Tensor:
        check_windows(windows, self.window, "Ngram")
        return self.chances(windows).log().to(torch.get_default_dtype())

    def chances(self, windows: Tensor) -> Tensor:
        """Probabilities (n, vocab) of what follows each window (n, window), in double precision."""
        own = windows[:, self.window - self.order + 1 :]
        if self.smoothing == "add":
            seen = self._seen(own)
            total = seen.sum(1, keepdim=True) + self.k * self.vocab
            return torch.where(total > 0, (seen + self.k) / total.clamp(min=1e-300), 1 / self.vocab)
        found = torch.full((len(windows), self.vocab), 1 / self.vocab, dtype=torch.float64, device=windows.device)
        if self.smoothing == "interpolate":
            return self._interpolated(own, found)
        for n in range(1, self.order + 1):
            seen = self._seen(own[:, self.order - n :])
            total, kinds = seen.sum(1, keepdim=True), (seen > 0).sum(1, keepdim=True)
            taken = (seen - self.discount).clamp(min=0)
            left = self.discount * kinds / total.clamp(min=1)
            if self.smoothing == "backoff":
                rest = found.masked_fill(seen > 0, 0)
                room = rest.sum(1, keepdim=True)
                # Where every token was seen there is nobody to give the rest to, and nothing is taken.
                taken, left = torch.where(room > 0, taken, seen), torch.where(room > 0, left, 0)
                found = torch.where(total > 0, taken / total.clamp(min=1) + left * rest / room.clamp(min=1e-300), found)
            else:
                found = torch.where(total > 0, taken / total.clamp(min=1) + left * found, found)
        return found

    def _interpolated(self, own: Tensor, uniform: Tensor) -> Tensor:
        found, share = self.weights[0] * uniform, torch.full_like(uniform[:, :1], self.weights[0])
        for n in range(1, self.order + 1):
            seen = self._seen(own[:, self.order - n :])
            total = seen.sum(1, keepdim=True)
            found = found + self.weights[n] * seen / total.clamp(min=1)
            share = share + self.weights[n] * (total > 0)
        return torch.where(share > 0, found / share.clamp(min=1e-300), uniform)

    def _seen(self, before: Tensor) -> Tensor:
        """How often each token followed each of the rows: (m, n - 1) -> (m, vocab)."""
        n = before.shape[1] + 1
        grams, counts = getattr(self, f"grams_{n}"), getattr(self, f"counts_{n}")
        first = self._code(before) * self.vocab
        # The n-grams that begin alike lie together, as they are sorted.
        start, end = torch.searchsorted(grams, first), torch.searchsorted(grams, first + self.vocab)
        sizes = end - start
        # Without numbers, as on the meta device, one entry for each row stands for however many there are.
        row = torch.repeat_interleave(sizes, output_size=len(sizes) if sizes.is_meta else None)
        at = torch.arange(len(row), device=row.device) - (sizes.cumsum(0) - sizes)[row] + start[row]
        found = torch.zeros(len(before), self.vocab, dtype=torch.float64, device=before.device)
        found[row, grams[at] % self.vocab] = counts[at].double()
        return found

    def _code(self, grams: Tensor) -> Tensor:
        """One number for each row (m, n) of tokens."""
        code = torch.zeros(len(grams), dtype=torch.int64, device=grams.device)
        for column in grams.unbind(1):
            code = code * self.vocab + column
        return code
