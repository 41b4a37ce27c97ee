"""Speculative decoding: a draft model proposes several tokens, the target model checks them in one forward pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.checks import integer, token_count
from wonderland.generation.generate import raise_no_token, row_names
from wonderland.generation.generated import Generated
from wonderland.generation.prompts import check_context, read_prompts
from wonderland.generation.randomness import Uniforms
from wonderland.generation.reading import Reader
from wonderland.generation.record import Record
from wonderland.generation.sampling import Sampling, draw
from wonderland.generation.stops import Stops

MAX_UNREAD = 16  # tokens that the target reads again after a rejection, before its state is advanced


@dataclass(frozen=True)
class Speculated(Generated):
    """What was generated, how many tokens the draft proposed, and how many of them were accepted."""

    proposed: int = 0
    accepted: int = 0


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
    r"""Generate as `generate` does, faster, with the help of a smaller `draft` model that proposes `ahead` tokens at a time.

    A token x proposed by the draft q is accepted with probability min(1, p(x) / q(x)), where p is the model. After the first
    rejection one token is drawn from the normalised rest of p; if all are accepted, one more token is drawn from p:

    .. math:: x \sim q, \quad \text{accept with } \min\!\left(1, \frac{p(x)}{q(x)}\right), \quad
        \text{else } x \sim \frac{\max(0, p - q)}{\sum \max(0, p - q)}

    Every token then has exactly the distribution p; with temperature 0 the text is the model's greedy text. p and q are both
    taken after the rules of `Sampling`. No state is modified: after a rejection the draft continues from the state before the
    rejected token, and the model reads the tokens since its last state again, so any mixer works.

    Faster than `generate` if the model is large enough that reading several tokens costs little more than reading one, and
    the draft is often right. Paper: Leviathan et al., 2023; Chen et al., 2023. Book: Alice 11.2.

    >>> from wonderland.models import Decoder
    >>> from wonderland.generation import generate
    >>> model, draft = Decoder(vocab=10, dim=16, depth=2), Decoder(vocab=10, dim=8, depth=1)
    >>> fast = speculate(model, draft, [[1], [2, 3]], 12, temperature=0)
    >>> fast.tokens == generate(model, [[1], [2, 3]], 12, temperature=0).tokens
    True
    """
    count = token_count(count)
    ahead = integer(ahead, "ahead, the number of tokens that the draft proposes at a time, is")
    seed = integer(seed, "seed is", None)
    vocab, draft_vocab = getattr(model, "vocab", None), getattr(draft, "vocab", None)
    if None not in (vocab, draft_vocab) and vocab != draft_vocab:
        raise WonderlandError(
            f"The model has {vocab} tokens and the draft {draft_vocab}: both need the same vocabulary."
        )
    sampling = Sampling(temperature, top_k, top_p, min_p, typical, repetition_penalty)
    batch = read_prompts(prompts, mask, model)
    check_context(model, batch, count)
    check_context(draft, batch, count)
    record = Record(len(batch.lists), count, Stops(stop, pieces, vocab))
    readers, proposed, accepted = (Reader(model), Reader(draft)), 0, 0
    for row, name in enumerate(row_names(rows, len(batch.lists))):
        decoder = _RowDecoder(readers, sampling, batch.lists[row], Uniforms(seed, [name]), batch.tokens.device)
        while not record.ended[row]:
            length = len(record.tokens[row])
            proposals = min(ahead, count - length - 1)
            tokens = decoder.round(proposals, row, length)
            proposed, accepted = proposed + proposals, accepted + len(tokens) - 1
            for token in tokens:
                if not record.ended[row]:
                    record.take(row, token)
    result = record.generated()
    return Speculated(result.tokens, result.ended, result.texts, proposed=proposed, accepted=accepted)


class _RowDecoder:
    """Speculative decoding of one row: the states of model and draft, and the tokens that each has not read yet."""

    def __init__(
        self, readers: tuple[Reader, Reader], sampling: Sampling, prompt: list[int], uniforms: Uniforms, device: Any
    ):
        self.model, self.draft = readers
        self.sampling, self.device, self._uniforms, self._drawn = sampling, device, uniforms, 0
        self.state, self.unread = None, list(prompt)
        self.draft_state, self.draft_unread = None, list(prompt)
        self.seen: Tensor | None = None

    def round(self, proposals: int, row: int, step: int) -> list[int]:
        """Propose tokens, check them, and return those that are decided: at least one."""
        proposed, draft_probabilities, states = self._propose(proposals, row, step)
        logits, state = self._read(self.model, self.state, [*self.unread, *proposed])
        seen = self._seen_with(logits, proposed)
        probabilities = self.sampling.probabilities(logits[len(self.unread) - 1 :], seen)
        if not bool(probabilities.sum(-1).isfinite().all()):
            raise_no_token(logits, row, step)
        for index, token in enumerate(proposed):
            p, q = probabilities[index], draft_probabilities[index]
            if self._uniform() * float(q[token]) < float(p[token]):
                continue
            # Rejected: the draft returns to the state before this token, the model keeps its state from before the round.
            corrected = self._draw((p - q).clamp_min(0), p)
            decided = [*proposed[:index], corrected]
            self.draft_state, self.draft_unread = states[index], [corrected]
            self.unread += decided
            if len(self.unread) > MAX_UNREAD:
                _, self.state = self._read(self.model, self.state, self.unread[:-1])
                self.unread = self.unread[-1:]
            break
        else:
            decided = [*proposed, self._draw(probabilities[-1], probabilities[-1])]
            self.state, self.unread = state, decided[-1:]
            if proposed:
                self.draft_state, self.draft_unread = states[-1], decided[-2:]
            else:
                self.draft_unread = [*self.draft_unread, *decided]
        if self.seen is not None:
            self.seen[decided] = True
        return decided

    def _propose(self, proposals: int, row: int, step: int) -> tuple[list[int], list[Tensor], list[Any]]:
        """Tokens of the draft, the distribution that each was drawn from, and the state before each."""
        proposed, distributions, states = [], [], []
        unread, state = self.draft_unread, self.draft_state
        for _ in range(proposals):
            logits, state = self._read(self.draft, state, unread)
            seen = self._seen_with(logits, proposed)
            probabilities = self.sampling.probabilities(logits[-1], None if seen is None else seen[-1])
            if not bool(probabilities.sum().isfinite()):
                raise_no_token(logits, row, step)
            token = self._draw(probabilities, probabilities)
            proposed.append(token)
            distributions.append(probabilities)
            states.append(state)
            unread = [token]
        return proposed, distributions, states

    def _read(self, reader: Reader, state: Any, tokens: list[int]) -> tuple[Tensor, Any]:
        logits, state = reader.follow(torch.tensor([tokens], device=self.device), state)
        return logits[0], state

    def _seen_with(self, logits: Tensor, proposed: list[int]) -> Tensor | None:
        """Which tokens occur in the text before each proposal, and after all of them (proposals + 1, vocab)."""
        if not self.sampling.penalizes:
            return None
        if self.seen is None:
            self.seen = torch.zeros(logits.shape[-1], dtype=torch.bool, device=logits.device)
            self.seen[self.unread] = True
        seen = self.seen.repeat(len(proposed) + 1, 1)
        for index, token in enumerate(proposed):
            seen[index + 1 :, token] = True
        return seen

    def _draw(self, weights: Tensor, fallback: Tensor) -> int:
        token = draw(weights.unsqueeze(0), self._next_uniform())[0]
        # If p and q agree, rounding can leave nothing of p - q; then the token is drawn from p.
        return token if token >= 0 else draw(fallback.unsqueeze(0), self._next_uniform())[0]

    def _uniform(self) -> float:
        return float(self._next_uniform())

    def _next_uniform(self) -> Tensor:
        self._drawn += 1
        return self._uniforms.at(self._drawn - 1).to(self.device)
