"""Speculative decoding: a small model guesses ahead, the large one reads the guesses at once and keeps what it would say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.checks import whole, whole_count
from wonderland.generation.generate import complain, row_names
from wonderland.generation.prompts import check_context, read_prompts
from wonderland.generation.randomness import Uniforms
from wonderland.generation.reading import Reader
from wonderland.generation.record import Record
from wonderland.generation.sampling import Sampling, draw
from wonderland.generation.stops import Stops
from wonderland.generation.written import Written

MOST_UNREAD = 16


@dataclass(frozen=True)
class Speculated(Written):
    """What was written, how many guesses the draft made, and how many of them were kept."""

    guessed: int = 0
    kept: int = 0


def speculate(
    model: Any,
    draft: Any,
    prompts: Any,
    count: Any,
    *,
    ahead: Any = 4,
    mask: Any = None,
    temperature: Any = 1.0,
    top_k: Any = None,
    top_p: Any = None,
    min_p: Any = None,
    typical: Any = None,
    repetition_penalty: Any = None,
    seed: Any = 0,
    rows: Sequence[int] | None = None,
    stop: Any = (),
    pieces: Sequence[bytes] | None = None,
) -> Speculated:
    r"""Write as `generate` does, with a smaller model that guesses `ahead` tokens at a time.

    A guess x of the draft q is kept with probability min(1, p(x) / q(x)), where p is the model; after the first that is not,
    a token is drawn from what is left of p, and if all are kept, one more from p:

    .. math:: x \sim q, \quad \text{keep with } \min\!\left(1, \frac{p(x)}{q(x)}\right), \quad
        \text{else } x \sim \frac{\max(0, p - q)}{\sum \max(0, p - q)}

    Every token then has the distribution p exactly; with temperature 0 the text is the model's greedy text. p and q are both
    taken after the rules of `Sampling`. States are never written to: after a guess that was not kept, the draft goes on from
    the state before it, and the model reads the few tokens since its last state again, so any mixer works.

    Faster than `generate` where the model is large enough that reading several tokens costs little more than reading one, and
    the draft is often right. Paper: Leviathan et al., 2023; Chen et al., 2023. Book: Alice 11.2.

    >>> from wonderland.models import Decoder
    >>> from wonderland.generation import generate
    >>> model, draft = Decoder(vocab=10, dim=16, depth=2), Decoder(vocab=10, dim=8, depth=1)
    >>> fast = speculate(model, draft, [[1], [2, 3]], 12, temperature=0)
    >>> fast.tokens == generate(model, [[1], [2, 3]], 12, temperature=0).tokens
    True
    """
    count = whole_count(count)
    ahead = whole(ahead, "ahead, the number of tokens that the draft guesses at a time, is")
    seed = whole(seed, "seed is", None)
    sizes = [getattr(one, "vocab", None) for one in (model, draft)]
    if None not in sizes and sizes[0] != sizes[1]:
        raise WonderlandError(f"The model has {sizes[0]} tokens and the draft {sizes[1]}: both need one vocabulary.")
    sampling = Sampling(temperature, top_k, top_p, min_p, typical, repetition_penalty)
    given = read_prompts(prompts, mask, model)
    for one in (model, draft):
        check_context(one, given, count)
    record = Record(len(given.lists), count, Stops(stop, pieces, sizes[0]))
    readers, guessed, kept = (Reader(model), Reader(draft)), 0, 0
    for row, name in enumerate(row_names(rows, len(given.lists))):
        text = _Row(readers, sampling, given.lists[row], Uniforms(seed, [name]), given.tokens.device)
        while not record.ended[row]:
            written = record.tokens[row]
            guesses = min(ahead, count - len(written) - 1)
            tokens = text.round(guesses, row, len(written))
            guessed, kept = guessed + guesses, kept + len(tokens) - 1
            for token in tokens:
                if not record.ended[row]:
                    record.take(row, token)
    done = record.written()
    return Speculated(done.tokens, done.ended, done.texts, guessed=guessed, kept=kept)


class _Row:
    """One text: the last states kept, and the tokens that they have not read."""

    def __init__(
        self, readers: tuple[Reader, Reader], sampling: Sampling, prompt: list[int], uniforms: Uniforms, device: Any
    ):
        self.model, self.draft = readers
        self.sampling, self.device, self._uniforms, self._drawn = sampling, device, uniforms, 0
        self.state, self.unread = None, list(prompt)
        self.draft_state, self.draft_unread = None, list(prompt)
        self.seen: Tensor | None = None

    def round(self, guesses: int, row: int, step: int) -> list[int]:
        """Guess, check, and return the tokens that are certain now: one at least."""
        proposed, chances, states = self._guess(guesses, row, step)
        logits, state = self._read(self.model, self.state, [*self.unread, *proposed])
        seen = self._seen_with(logits, proposed)
        wanted = self.sampling.chances(logits[len(self.unread) - 1 :], seen)
        if not bool(wanted.sum(-1).isfinite().all()):
            complain(logits, row, step)
        for at, token in enumerate(proposed):
            p, q = wanted[at], chances[at]
            if self._uniform() * float(q[token]) < float(p[token]):
                continue
            # The draft takes up the state before the guess that was wrong; the model still has its own of before.
            other = self._draw((p - q).clamp_min(0), p)
            certain = [*proposed[:at], other]
            self.draft_state, self.draft_unread = states[at], [other]
            self.unread += certain
            if len(self.unread) > MOST_UNREAD:
                _, self.state = self._read(self.model, self.state, self.unread[:-1])
                self.unread = self.unread[-1:]
            break
        else:
            certain = [*proposed, self._draw(wanted[-1], wanted[-1])]
            self.state, self.unread = state, certain[-1:]
            if proposed:
                self.draft_state, self.draft_unread = states[-1], certain[-2:]
            else:
                self.draft_unread = [*self.draft_unread, *certain]
        if self.seen is not None:
            self.seen[certain] = True
        return certain

    def _guess(self, guesses: int, row: int, step: int) -> tuple[list[int], list[Tensor], list[Any]]:
        """Tokens of the draft, the distribution each was drawn from, and the state before each."""
        proposed, chances, states = [], [], []
        unread, state = self.draft_unread, self.draft_state
        for _ in range(guesses):
            logits, state = self._read(self.draft, state, unread)
            seen = self._seen_with(logits, proposed)
            found = self.sampling.chances(logits[-1], None if seen is None else seen[-1])
            if not bool(found.sum().isfinite()):
                complain(logits, row, step)
            token = self._draw(found, found)
            proposed.append(token)
            chances.append(found)
            states.append(state)
            unread = [token]
        return proposed, chances, states

    def _read(self, reader: Reader, state: Any, tokens: list[int]) -> tuple[Tensor, Any]:
        logits, state = reader.follow(torch.tensor([tokens], device=self.device), state)
        return logits[0], state

    def _seen_with(self, logits: Tensor, proposed: list[int]) -> Tensor | None:
        """Which tokens stand in the text before each guess, and after all of them (guesses + 1, vocab)."""
        if not self.sampling.penalises:
            return None
        if self.seen is None:
            self.seen = torch.zeros(logits.shape[-1], dtype=torch.bool, device=logits.device)
            self.seen[self.unread] = True
        seen = self.seen.repeat(len(proposed) + 1, 1)
        for at, token in enumerate(proposed):
            seen[at + 1 :, token] = True
        return seen

    def _draw(self, weights: Tensor, otherwise: Tensor) -> int:
        token = draw(weights.unsqueeze(0), self._uniform_row())[0]
        # Rounding may leave nothing of p - q where the two agree; then p itself is right.
        return token if token >= 0 else draw(otherwise.unsqueeze(0), self._uniform_row())[0]

    def _uniform(self) -> float:
        return float(self._uniform_row())

    def _uniform_row(self) -> Tensor:
        self._drawn += 1
        return self._uniforms.at(self._drawn - 1).to(self.device)
