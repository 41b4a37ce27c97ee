"""Writing: one generator for every model that streams, token by token or all at once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.generation.checks import whole, whole_count
from wonderland.generation.constraint import Constraint
from wonderland.generation.prompts import Prompts, check_context, read_prompts
from wonderland.generation.randomness import Uniforms
from wonderland.generation.reading import Reader
from wonderland.generation.record import Record
from wonderland.generation.sampling import Sampling
from wonderland.generation.stops import Stops
from wonderland.generation.written import Token, Written


def generate(
    model: Any,
    prompts: Any,
    count: Any,
    *,
    mask: Any = None,
    state: Any = None,
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
    constraint: Constraint | None = None,
    on_token: Callable[[Token], Any] | None = None,
) -> Written:
    """Write on after each prompt, at most `count` tokens, with any model that has `stream`.

    - `prompts`: a tensor (b, t), with a `mask` (b, t) where rows are padded, or a list of lists of token ids of any lengths.
    - `state`: what was read before the prompts (an encoder-decoder's `prepare(source)`); it is not written to.
    - `temperature` (0: always the most likely token), `top_k`, `top_p`, `min_p`, `typical`, `repetition_penalty`: see
      `generation.Sampling` and the functions of these names there.
    - `seed`, `rows`: the random numbers of a row depend on the seed and on its name in `rows` (0, 1, ... unless given)
      alone, so that a row among others is the row alone.
    - `stop`: token ids that end a row, and strings (looked for in `pieces`, the bytes that each token writes).
    - `constraint`: what the text of every row matches, `generation.matching(...)` or `generation.json_schema(...)`.
    - `on_token`: called with each `Token` as it is written.

    The model is as in evaluation, whatever its mode, and neither its mode nor the caller's random numbers change.

    Book: Alice 8.4; D2L 9.7, 10.8.

    >>> from wonderland.models import Decoder
    >>> model = Decoder(vocab=10, dim=8, depth=1)
    >>> [len(tokens) for tokens in generate(model, [[1], [2, 3]], 5).tokens]
    [5, 5]
    """
    sampling = Sampling(temperature, top_k, top_p, min_p, typical, repetition_penalty)
    run = Run(model, prompts, count, sampling, mask, state, seed, rows, stop, pieces, constraint)
    for tokens in run.steps():
        if on_token is not None:
            for token in tokens:
                on_token(token)
    return run.record.written()


def write(model: Any, prompts: Any, count: Any, **options: Any) -> Iterator[Token]:
    """`generate` as an iterator: each `Token` as soon as it is written. Takes the options of `generate` but `on_token`.

    >>> from wonderland.models import Decoder
    >>> [token.row for token in write(Decoder(vocab=10, dim=8, depth=1), [[1], [2, 3]], 2)]
    [0, 1, 0, 1]
    """
    rules, own = Sampling.__dataclass_fields__, ("mask", "state", "seed", "rows", "stop", "pieces", "constraint")
    for name in options:
        if name not in rules and name not in own:
            raise WonderlandError(f"write has no option {name!r}.{nearest(name, [*rules, *own])}")
    sampling = Sampling(**{name: value for name, value in options.items() if name in rules})
    run = Run(model, prompts, count, sampling, **{name: value for name, value in options.items() if name in own})
    return (token for tokens in run.steps() for token in tokens)


class Run:
    """One call of `generate`: checks what was asked, then writes step by step."""

    def __init__(
        self,
        model: Any,
        prompts: Any,
        count: Any,
        sampling: Sampling,
        mask: Any = None,
        state: Any = None,
        seed: Any = 0,
        rows: Sequence[int] | None = None,
        stop: Any = (),
        pieces: Sequence[bytes] | None = None,
        constraint: Constraint | None = None,
    ):
        count, seed = whole_count(count), whole(seed, "seed is", None)
        self.reader, self.sampling, self.count, self.state = Reader(model), sampling, count, state
        self.prompts = prompts if isinstance(prompts, Prompts) else read_prompts(prompts, mask, model)
        if state is None:
            check_context(model, self.prompts, count)
        vocab, size = getattr(model, "vocab", None), len(self.prompts.lists)
        self._given = (pieces, None if constraint is None else constraint.pieces)
        self._check_pieces(vocab)
        self.stops = Stops(stop, pieces if pieces is not None or constraint is None else constraint.pieces, vocab)
        if constraint is not None:
            if self.stops.strings:
                raise WonderlandError("A stop string would cut a text that a constraint completes: give one of them.")
            constraint = constraint.without(self.stops.tokens)
            constraint.check(count)
        self.constraint, self.record = constraint, Record(size, count, self.stops, constraint)
        names = row_names(rows, size)
        self.uniforms = None if sampling.greedy else Uniforms(seed, names)

    def steps(self) -> Iterator[list[Token]]:
        """The tokens of each step, those of rows that have not ended."""
        ended = self.record.ended
        slots = list(range(len(ended)))  # the rows that are computed, in their order in the batch
        if self.constraint is not None and self.constraint.final(self.constraint.start, self.count):
            ended[:] = ["constraint"] * len(slots)
            return
        logits, state = self.reader.begin(self.prompts, self.state)
        self.state = None
        self._check_pieces(logits.shape[-1])
        state = self.reader.session(state)
        device, seen = logits.device, self._seen(logits)
        for step in range(self.count):
            chosen = self._choose(logits, seen, slots, step)
            yield [self.record.take(row, token) for row, token in zip(slots, chosen, strict=True) if not ended[row]]
            live = [place for place, row in enumerate(slots) if not ended[row]]
            if not live:
                return
            # Rows that have ended are computed along until a quarter has: a copy of the state costs several steps.
            if 4 * len(live) <= 3 * len(slots):
                index = torch.tensor(live, device=device)
                state = self.reader.session(self.reader.rows(state, index))
                seen = None if seen is None else seen[index]
                slots, chosen = [slots[place] for place in live], [chosen[place] for place in live]
                if self.uniforms is not None:
                    self.uniforms.keep(live)
            if seen is not None:
                seen[range(len(chosen)), chosen] = True
            logits, state = self.reader.step(chosen, state, device)

    def _check_pieces(self, vocab: int | None) -> None:
        for given in self._given:
            if given is not None and vocab is not None and len(given) != vocab:
                raise WonderlandError(
                    f"There are {len(given)} pieces and the model has {vocab} tokens: give one for each."
                )

    def _choose(self, logits: Tensor, seen: Tensor | None, slots: list[int], step: int) -> list[int]:
        with torch.no_grad():
            if self.constraint is not None:
                logits = self._constrain(logits, slots, step)
            chosen = self.sampling.choose(logits, None if self.uniforms is None else self.uniforms.at(step), seen)
        if min(chosen) < 0:
            for place, (row, token) in enumerate(zip(slots, chosen, strict=True)):
                if token < 0 and not self.record.ended[row]:
                    complain(logits[place], row, step)
            chosen = [max(token, 0) for token in chosen]
        return chosen

    def _constrain(self, logits: Tensor, slots: list[int], step: int) -> Tensor:
        assert self.constraint is not None
        masks = []
        for row in slots:
            at = self.record.at[row]
            allowed = self.constraint.allowed(at, self.count - step)
            if self.stops.tokens:
                allowed = allowed.clone()
                allowed[list(self.stops.tokens)] = self.constraint.accepts(at)
            masks.append(allowed)
        return logits.masked_fill(~torch.stack(masks).to(logits.device), -torch.inf)

    def _seen(self, logits: Tensor) -> Tensor | None:
        if not self.sampling.penalises:
            return None
        seen = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
        for row, tokens in enumerate(self.prompts.lists):
            seen[row, tokens] = True
        return seen


def row_names(rows: Sequence[int] | None, size: int) -> list[int]:
    """The names of rows, on which their random numbers depend."""
    names = list(range(size)) if rows is None else [int(row) for row in rows]
    if len(names) != size:
        raise WonderlandError(f"rows names {len(names)} rows and there are {size} prompts: give one for each.")
    return names


def complain(logits: Tensor, row: int, step: int) -> None:
    """Say that nothing can be chosen from a row of logits."""
    what = (
        "logits that are not numbers" if bool(logits.isnan().any()) else "no finite logit for a token that may follow"
    )
    raise WonderlandError(
        f"The model gives {what} in row {row}, after {step} new tokens: look for NaN and infinity in its weights."
    )
