"""Prefix beam search: the likeliest texts of CTC frames, with a language model if there is one."""

import math
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError

Prefix = tuple[int, ...]
_NONE = -math.inf


class PrefixLanguage:
    """Log-probabilities of the next token of a language model after a prefix, each prefix read once; share it among searches."""

    def __init__(self, model: Any, begin: int):
        self.model = model.eval()
        self.known: dict[Prefix, tuple[Any, Tensor]] = {(): self._read(begin, None)}

    def _read(self, token: int, state: Any) -> tuple[Any, Tensor]:
        with torch.no_grad():
            logits, state = self.model.stream(torch.tensor([[token]]), state)
        return state, logits[0, -1].double().log_softmax(-1)

    def after(self, prefix: Prefix) -> Tensor:
        if prefix not in self.known:
            self.after(prefix[:-1])
            self.known[prefix] = self._read(prefix[-1], self.known[prefix[:-1]][0])
        return self.known[prefix][1]


def ctc_beam_search(
    logits: Tensor,
    *,
    beams: int = 16,
    blank: int = 0,
    language: Any = None,
    weight: float | int = 0.5,
    bonus: float | int = 0.0,
    begin: int | None = None,
    prune: float = 1e-4,
) -> list[tuple[list[int], float]]:
    r"""The texts with the highest score, best first, as (tokens, score): of all paths that collapse to a text, the probabilities are added.

    .. math:: \mathrm{score}(y) = \log p_\mathrm{CTC}(y \mid x) + \alpha \log p_\mathrm{LM}(y) + \beta |y|

    alpha is `weight`, beta `bonus`. `language` is a causal language model over the same tokens, which begins after the token `begin`
    (the blank unless given). At each frame tokens below the probability `prune` are left out, the `beams` best prefixes stay. With as
    many beams as there are prefixes, no language model and prune=0 the scores are exact. Shapes: logits (t, v).
    Paper: Graves and Jaitly, 2014; Hannun et al., 2014.

    >>> ctc_beam_search(torch.zeros(2, 3), beams=100, prune=0)[0][0] in ([1], [2])
    True
    """
    if logits.dim() != 2 or beams < 1 or not 0 <= blank < logits.shape[1]:
        raise WonderlandError(
            f"A beam search takes logits (t, v), at least one beam and a blank below v, not {tuple(logits.shape)} and {beams}."
        )
    scores = logits.detach().double().log_softmax(-1).cpu()
    if language is not None and not isinstance(language, PrefixLanguage):
        language = PrefixLanguage(language, blank if begin is None else begin)
    model: PrefixLanguage | None = language
    lowest = math.log(prune) if prune > 0 else _NONE
    # For each prefix: the log-probability of its paths that end in a blank, of those that end in its last token, and of the text.
    kept: dict[Prefix, tuple[float, float, float]] = {(): (0.0, _NONE, 0.0)}
    for frame in scores:
        values = frame.tolist()
        tokens = [token for token, value in enumerate(values) if value >= lowest and token != blank]
        grown: dict[Prefix, list[float]] = {}
        for prefix, (ends_blank, ends_token, text) in kept.items():
            total = _add(ends_blank, ends_token)
            entry = grown.setdefault(prefix, [_NONE, _NONE, text])
            entry[0] = _add(entry[0], total + values[blank])
            if prefix:
                entry[1] = _add(entry[1], ends_token + values[prefix[-1]])
            for token in tokens:
                before = ends_blank if prefix and token == prefix[-1] else total
                if before == _NONE:
                    continue
                longer = (*prefix, token)
                if longer not in grown:
                    said = 0.0 if model is None else weight * float(model.after(prefix)[token])
                    grown[longer] = [_NONE, _NONE, text + said + bonus]
                grown[longer][1] = _add(grown[longer][1], before + values[token])
        best = sorted(grown.items(), key=lambda item: (-_add(item[1][0], item[1][1]) - item[1][2], item[0]))[:beams]
        kept = {prefix: (a, b, text) for prefix, (a, b, text) in best}
    return [(list(prefix), _add(a, b) + text) for prefix, (a, b, text) in kept.items()]


def _add(a: float, b: float) -> float:
    """log(exp a + exp b)."""
    if a < b:
        a, b = b, a
    return a if b == _NONE else a + math.log1p(math.exp(b - a))
