"""Beam search: several continuations of each prompt at once, the most likely kept at each step."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.checks import check_pieces, integer, token_count
from wonderland.generation.constraint import Constraint
from wonderland.generation.generated import Generated
from wonderland.generation.prompts import Prompts, check_context, read_prompts
from wonderland.generation.reading import Reader
from wonderland.generation.stops import StopFilter, Stops


def beam_search(
    model: Any,
    prompts: Any,
    count: Any,
    *,
    beams: Any = 4,
    alpha: float | int = 0.75,
    length: str = "power",
    stop: Any = (),
    pieces: Sequence[bytes] | None = None,
    constraint: Constraint | None = None,
    mask: Any = None,
    state: Any = None,
) -> list[Generated]:
    r"""The most likely continuations of each prompt, of at most `count` tokens, best first: `beams` of them or fewer.

    .. math::
        \mathrm{score}(y) = \frac{1}{\ell(L)} \sum_{t=1}^{L} \log p(y_t \mid y_{<t}, c), \qquad
        \ell(L) = L^\alpha \ \text{("power")}, \quad \left(\tfrac{5 + L}{6}\right)^\alpha \ \text{("gnmt")}

    L counts the stop token. At each step every open hypothesis is extended by every token; the `beams` most likely stay open,
    and those that end are kept if their score is among the best. The search stops when no open hypothesis can overtake them:
    its log-likelihood only falls, so its score is at most its present log-likelihood normalised by the full length. One beam
    is greedy search; as many beams as there are texts make the search exhaustive.

    `stop`, `pieces` and `constraint` are those of `generate`. Tokens that the constraint forbids are left out, and the
    probabilities of the others are not renormalised.

    Book: Alice 8.4; D2L 10.8. Paper: Wu et al., 2016 (GNMT).

    >>> from wonderland.models import Decoder
    >>> best = beam_search(Decoder(vocab=10, dim=8, depth=1), [[1], [2, 3]], 5, beams=3)
    >>> [len(beams.tokens) for beams in best], best[0].scores == sorted(best[0].scores, reverse=True)
    ([3, 3], True)
    """
    count = token_count(count)
    beams = integer(beams, "beams is")
    if not alpha >= 0 or length not in ("power", "gnmt"):
        raise WonderlandError(
            f"Scores are normalised by alpha, at least 0, and length, 'power' or 'gnmt', not {alpha!r} and {length!r}."
        )
    reader, batch = Reader(model), read_prompts(prompts, mask, model)
    if state is None:
        check_context(model, batch, count)
    vocab = getattr(model, "vocab", None)
    pieces = pieces if pieces is not None or constraint is None else constraint.pieces
    stops = Stops(stop, pieces, vocab)
    check_pieces(pieces, vocab)
    if constraint is not None:
        check_pieces(constraint.pieces, vocab)
        if stops.strings:
            raise WonderlandError(
                "A stop string could cut off a text before the constraint is met: give only one of them."
            )
        constraint = constraint.without(stops.tokens)
        constraint.check(count)
    search = _Search(len(batch.lists), beams, count, stops, constraint, lambda size: _normalizer(size, alpha, length))
    with torch.no_grad():
        search.run(reader, batch, state)
    return search.results()


def _normalizer(size: int, alpha: float | int, length: str) -> float:
    """The divisor of the log-likelihood of a text with `size` tokens."""
    return float((size if length == "power" else (5 + size) / 6) ** alpha)


class _Search:
    """The hypotheses of all prompts: `finished` ones as (score, tokens, reason), and those that are still extended."""

    def __init__(
        self,
        size: int,
        beams: int,
        count: int,
        stops: Stops,
        constraint: Constraint | None,
        normalizer: Callable[[int], float],
    ):
        self.size, self.beams, self.count, self.normalizer = size, beams, count, normalizer
        self.stops, self.stop_tokens, self.constraint = stops, sorted(stops.tokens), constraint
        self.finished: list[list[tuple[float, list[int], str]]] = [[] for _ in range(size)]
        self.open_prompts = list(range(size))
        # The state of the constraint for each open hypothesis of each prompt.
        self.constraint_states = [[None if constraint is None else constraint.start] for _ in range(size)]

    def run(self, reader: Reader, prompts: Prompts, state: Any) -> None:
        """Extend hypotheses token by token until all prompts are finished."""
        if self.constraint is not None and self.constraint.final(self.constraint.start, self.count):
            self.finished = [[(0.0, [], "constraint")] for _ in range(self.size)]
            return
        logits, state = reader.begin(prompts, state)
        # Each prompt begins with one hypothesis: several would be equal.
        texts: list[list[list[int]]] = [[[]] for _ in range(self.size)]
        likelihoods = [torch.zeros(1, dtype=torch.float64, device=logits.device) for _ in range(self.size)]
        for step in range(1, self.count + 1):
            log_probabilities = logits.log_softmax(-1, dtype=torch.float64)
            if bool(log_probabilities.isnan().any()):
                raise WonderlandError(
                    f"The model gives logits that are not numbers after {step - 1} new tokens: "
                    "look for NaN and infinity in its weights."
                )
            parents, tokens, row = [], [], 0
            prompts_before, self.open_prompts = self.open_prompts, []
            for prompt in prompts_before:
                hypotheses = texts[prompt]
                extended = likelihoods[prompt].unsqueeze(1) + log_probabilities[row : row + len(hypotheses)]
                chosen = self._extend(prompt, hypotheses, extended, step)
                if chosen:
                    self.open_prompts.append(prompt)
                    texts[prompt] = [[*hypotheses[parent], token] for parent, token, _ in chosen]
                    if self.constraint is not None:
                        states = [self._constraint_after(prompt, parent, token) for parent, token, _ in chosen]
                        self.constraint_states[prompt] = states
                    values = torch.tensor([value for *_, value in chosen], dtype=torch.float64)
                    likelihoods[prompt] = values.to(log_probabilities.device)
                    parents += [row + parent for parent, *_ in chosen]
                    tokens += [token for _, token, _ in chosen]
                row += len(hypotheses)
            if not self.open_prompts:
                return
            index = torch.tensor(parents, device=logits.device)
            logits, state = reader.step(tokens, reader.rows(state, index), logits.device)

    def _extend(
        self, prompt: int, hypotheses: list[list[int]], likelihoods: Tensor, step: int
    ) -> list[tuple[int, int, float]]:
        """Record the hypotheses of one prompt that end at this step, and return the most likely others.

        likelihoods: (hypotheses, vocab), of every hypothesis extended by every token. Returns (parent, token, likelihood).
        """
        finished, normalizer, left = self.finished[prompt], self.normalizer(step), self.count - step
        if self.constraint is not None:
            likelihoods = likelihoods.masked_fill(~self._allowed(prompt, left + 1).to(likelihoods.device), -torch.inf)
        for token in self.stop_tokens:
            for parent, value in enumerate(likelihoods[:, token].tolist()):
                if value > -torch.inf:
                    finished.append((value / normalizer, hypotheses[parent], "stop"))
        if self.stop_tokens:
            likelihoods[:, self.stop_tokens] = -torch.inf
        # Where any token may end a text, twice as many candidates are taken, so that enough stay open.
        candidates = self.beams * (1 if self.constraint is None and not self.stops.strings else 2)
        values, positions = likelihoods.flatten().topk(min(candidates, likelihoods.numel()))
        vocab = likelihoods.shape[1]
        chosen = []
        for value, position in zip(values.tolist(), positions.tolist(), strict=True):
            parent, token = position // vocab, position % vocab
            if value == -torch.inf:
                continue
            if reason := self._end_reason(prompt, hypotheses[parent], parent, token, left):
                finished.append((value / normalizer, [*hypotheses[parent], token], reason))
            elif len(chosen) < self.beams:
                chosen.append((parent, token, value))
        if step == self.count:
            finished += [(value / normalizer, [*hypotheses[parent], token], "count") for parent, token, value in chosen]
            chosen = []
        finished.sort(key=lambda hypothesis: -hypothesis[0])
        del finished[self.beams :]
        best_possible = chosen[0][2] / self.normalizer(self.count) if chosen else -torch.inf
        decided = len(finished) == self.beams and best_possible <= finished[-1][0]
        return [] if decided else chosen

    def _allowed(self, prompt: int, left: int) -> Tensor:
        """The tokens that may extend each hypothesis (hypotheses, vocab); stop tokens where the text may end."""
        assert self.constraint is not None
        masks = []
        for state in self.constraint_states[prompt]:
            mask = self.constraint.allowed(state, left)
            if self.stop_tokens:
                mask = mask.clone()
                mask[self.stop_tokens] = self.constraint.accepts(state)
            masks.append(mask)
        return torch.stack(masks)

    def _constraint_after(self, prompt: int, parent: int, token: int) -> Any:
        assert self.constraint is not None
        return self.constraint.after(self.constraint_states[prompt][parent], token)

    def _end_reason(self, prompt: int, text: list[int], parent: int, token: int, left: int) -> str:
        """Why a text ends with this token, or "" if it stays open."""
        if self.constraint is not None and self.constraint.final(self._constraint_after(prompt, parent, token), left):
            return "constraint"
        if not self.stops.strings:
            return ""
        text_bytes = self._bytes([*text, token])
        return "stop" if any(string in text_bytes for string in self.stops.strings) else ""

    def _bytes(self, tokens: list[int]) -> bytes:
        assert self.stops.pieces is not None
        return b"".join(self.stops.pieces[token] for token in tokens)

    def _without_stop_string(self, tokens: list[int]) -> bytes:
        """The text of a hypothesis, cut before a stop string."""
        stop_filter = StopFilter(self.stops.strings)
        return stop_filter.push(self._bytes(tokens))[0] + stop_filter.flush()

    def results(self) -> list[Generated]:
        """The finished hypotheses of each prompt, best first."""
        has_pieces = self.stops.pieces is not None
        return [
            Generated(
                [tokens for _, tokens, _ in finished],
                [reason for *_, reason in finished],
                [self._without_stop_string(tokens) for _, tokens, _ in finished] if has_pieces else [],
                [score for score, *_ in finished],
            )
            for finished in self.finished
        ]
