"""Beam search: several texts at once, the most likely kept at each step."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.checks import whole, whole_count
from wonderland.generation.constraint import Constraint
from wonderland.generation.prompts import Prompts, check_context, read_prompts
from wonderland.generation.reading import Reader
from wonderland.generation.stops import Stops, Tail
from wonderland.generation.written import Written


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
) -> list[Written]:
    r"""The most likely continuations of each prompt, of at most `count` tokens, best first: `beams` of them or fewer.

    .. math::
        \mathrm{score}(y) = \frac{1}{\ell(L)} \sum_{t=1}^{L} \log p(y_t \mid y_{<t}, c), \qquad
        \ell(L) = L^\alpha \ \text{("power")}, \quad \left(\tfrac{5 + L}{6}\right)^\alpha \ \text{("gnmt")}

    L counts the stop token. At each step every text is continued by every token; the `beams` likeliest go on, and those that
    end are kept if their score is among the best. The search stops when no text that is still open can overtake them: its
    likelihood only falls, so its score stays below that of its likelihood now at the full length. With one beam it is greedy
    search; with as many beams as there are texts it is exhaustive.

    `stop`, `pieces` and `constraint` are those of `generate`. What a constraint forbids is left out, and the scores of the
    rest stay what they are.

    Book: Alice 8.4; D2L 10.8. Paper: Wu et al., 2016 (GNMT).

    >>> from wonderland.models import Decoder
    >>> best = beam_search(Decoder(vocab=10, dim=8, depth=1), [[1], [2, 3]], 5, beams=3)
    >>> [len(found.tokens) for found in best], best[0].scores == sorted(best[0].scores, reverse=True)
    ([3, 3], True)
    """
    count = whole_count(count)
    beams = whole(beams, "beams is")
    if not alpha >= 0 or length not in ("power", "gnmt"):
        raise WonderlandError(
            f"Lengths are made equal by alpha, at least 0, and length, 'power' or 'gnmt', not {alpha!r} and {length!r}."
        )
    reader, given = Reader(model), read_prompts(prompts, mask, model)
    if state is None:
        check_context(model, given, count)
    vocab = getattr(model, "vocab", None)
    pieces = pieces if pieces is not None or constraint is None else constraint.pieces
    stops = Stops(stop, pieces, vocab)
    for one in (pieces, None if constraint is None else constraint.pieces):
        if one is not None and vocab is not None and len(one) != vocab:
            raise WonderlandError(f"There are {len(one)} pieces and the model has {vocab} tokens: give one for each.")
    if constraint is not None:
        if stops.strings:
            raise WonderlandError("A stop string would cut a text that a constraint completes: give one of them.")
        constraint = constraint.without(stops.tokens)
        constraint.check(count)
    search = _Search(len(given.lists), beams, count, stops, constraint, lambda n: _scale(n, alpha, length))
    with torch.no_grad():
        search.run(reader, given, state)
    return search.found()


def _scale(size: int, alpha: float | int, length: str) -> float:
    return float((size if length == "power" else (5 + size) / 6) ** alpha)


class _Search:
    def __init__(self, size: int, beams: int, count: int, stops: Stops, constraint: Constraint | None, scale: Any):
        self.size, self.beams, self.count, self.scale = size, beams, count, scale
        self.stops, self.ends, self.constraint = stops, sorted(stops.tokens), constraint
        # What has ended, of each prompt: (score, tokens, why).
        self.ended: list[list[tuple[float, list[int], str]]] = [[] for _ in range(size)]
        self.open = list(range(size))
        # Where each text of a prompt stands in the constraint.
        self.at = [[None if constraint is None else constraint.start] for _ in range(size)]

    def run(self, reader: Reader, prompts: Prompts, state: Any) -> None:
        if self.constraint is not None and self.constraint.final(self.constraint.start, self.count):
            self.ended = [[(0.0, [], "constraint")] for _ in range(self.size)]
            return
        logits, state = reader.begin(prompts, state)
        # One text of each prompt to begin with: all beams would be alike.
        texts: list[list[list[int]]] = [[[]] for _ in range(self.size)]
        likelihoods = [torch.zeros(1, dtype=torch.float64, device=logits.device) for _ in range(self.size)]
        for step in range(1, self.count + 1):
            logs = logits.log_softmax(-1, dtype=torch.float64)
            if bool(logs.isnan().any()):
                raise WonderlandError(
                    f"The model gives logits that are not numbers after {step - 1} new tokens: "
                    "look for NaN and infinity in its weights."
                )
            parents, tokens, at = [], [], 0
            open_, self.open = self.open, []
            for prompt in open_:
                old = texts[prompt]
                whole = likelihoods[prompt].unsqueeze(1) + logs[at : at + len(old)]
                chosen = self._advance(prompt, old, whole, step)
                if chosen:
                    self.open.append(prompt)
                    texts[prompt] = [[*old[parent], token] for parent, token, _ in chosen]
                    if self.constraint is not None:
                        self.at[prompt] = [self._after(prompt, parent, token) for parent, token, _ in chosen]
                    likelihoods[prompt] = torch.tensor([value for *_, value in chosen], dtype=torch.float64).to(
                        logs.device
                    )
                    parents += [at + parent for parent, *_ in chosen]
                    tokens += [token for _, token, _ in chosen]
                at += len(old)
            if not self.open:
                return
            index = torch.tensor(parents, device=logits.device)
            logits, state = reader.step(tokens, reader.rows(state, index), logits.device)

    def _advance(self, prompt: int, old: list[list[int]], whole: Tensor, step: int) -> list[tuple[int, int, float]]:
        """Texts of one prompt after one token more: those that end are kept aside, the likeliest others go on."""
        ended, scale, left = self.ended[prompt], self.scale(step), self.count - step
        if self.constraint is not None:
            whole = whole.masked_fill(~self._allowed(prompt, left + 1).to(whole.device), -torch.inf)
        for token in self.ends:
            for parent, value in enumerate(whole[:, token].tolist()):
                if value > -torch.inf:
                    ended.append((value / scale, old[parent], "stop"))
        if self.ends:
            whole[:, self.ends] = -torch.inf
        # Where a token may end a text by what it writes, twice as many are looked at, so that enough go on.
        looked = self.beams * (1 if self.constraint is None and not self.stops.strings else 2)
        values, places = whole.flatten().topk(min(looked, whole.numel()))
        vocab = whole.shape[1]
        chosen = []
        for value, place in zip(values.tolist(), places.tolist(), strict=True):
            parent, token = place // vocab, place % vocab
            if value == -torch.inf:
                continue
            if why := self._ends(prompt, old[parent], parent, token, left):
                ended.append((value / scale, [*old[parent], token], why))
            elif len(chosen) < self.beams:
                chosen.append((parent, token, value))
        if step == self.count:
            ended += [(value / scale, [*old[parent], token], "count") for parent, token, value in chosen]
            chosen = []
        ended.sort(key=lambda one: -one[0])
        del ended[self.beams :]
        full = self.scale(self.count)
        hopeless = len(ended) == self.beams and (not chosen or chosen[0][2] / full <= ended[-1][0])
        return [] if hopeless else chosen

    def _allowed(self, prompt: int, left: int) -> Tensor:
        """Which tokens may follow each text of a prompt (texts, vocab); a stop token where a text may end."""
        assert self.constraint is not None
        masks = []
        for at in self.at[prompt]:
            mask = self.constraint.allowed(at, left)
            if self.ends:
                mask = mask.clone()
                mask[self.ends] = self.constraint.accepts(at)
            masks.append(mask)
        return torch.stack(masks)

    def _after(self, prompt: int, parent: int, token: int) -> Any:
        assert self.constraint is not None
        return self.constraint.after(self.at[prompt][parent], token)

    def _ends(self, prompt: int, text: list[int], parent: int, token: int, left: int) -> str:
        """Why a text ends with this token, or "" where it goes on."""
        if self.constraint is not None and self.constraint.final(self._after(prompt, parent, token), left):
            return "constraint"
        if not self.stops.strings:
            return ""
        written = self._text([*text, token])
        return "stop" if any(string in written for string in self.stops.strings) else ""

    def _text(self, tokens: list[int]) -> bytes:
        assert self.stops.pieces is not None
        return b"".join(self.stops.pieces[token] for token in tokens)

    def _shown(self, tokens: list[int]) -> bytes:
        """The text of a row, cut before a stop string."""
        tail = Tail(self.stops.strings)
        return tail.push(self._text(tokens))[0] + tail.rest()

    def found(self) -> list[Written]:
        return [
            Written(
                [tokens for _, tokens, _ in ended],
                [why for *_, why in ended],
                [] if self.stops.pieces is None else [self._shown(tokens) for _, tokens, _ in ended],
                [score for score, *_ in ended],
            )
            for ended in self.ended
        ]
