"""Generation with any model that streams: all tokens at once, or one by one as they come."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError, nearest
from wonderland.generation.checks import check_pieces, integer, token_count
from wonderland.generation.constraint import Constraint
from wonderland.generation.generated import Generated, Token
from wonderland.generation.prompts import Prompts, check_context, read_prompts
from wonderland.generation.randomness import Uniforms
from wonderland.generation.reading import Reader
from wonderland.generation.record import Record
from wonderland.generation.sampling import Sampling
from wonderland.generation.stops import Stops


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
) -> Generated:
    """Continue each prompt by at most `count` tokens, with any model that has `stream`.

    - `prompts`: a tensor (b, t), with a `mask` (b, t) where rows are padded, or a list of lists of token ids of any lengths.
    - `state`: the state that the prompts continue (such as an encoder-decoder's `prepare(source)`); it is not modified.
    - `temperature` (0: always the most likely token), `top_k`, `top_p`, `min_p`, `typical`, `repetition_penalty`: see
      `generation.Sampling` and the functions of these names there.
    - `seed`, `rows`: the random numbers of a row depend only on the seed and its name in `rows` (default 0, 1, ...), so the
      result for a row does not depend on the rest of the batch.
    - `stop`: token ids and strings that end a row; strings are searched for in `pieces`, the bytes of each token.
    - `constraint`: what the text of every row must match, `generation.matching(...)` or `generation.json_schema(...)`.
    - `on_token`: called with each `Token` as it comes.

    The model runs in evaluation mode without gradients; its mode and the global random state are left as they were.

    Book: Alice 8.4; D2L 9.7, 10.8.

    >>> from wonderland.models import Decoder
    >>> model = Decoder(vocab=10, dim=8, depth=1)
    >>> [len(tokens) for tokens in generate(model, [[1], [2, 3]], 5).tokens]
    [5, 5]
    """
    sampling = Sampling(temperature, top_k, top_p, min_p, typical, repetition_penalty)
    call = _Generation(model, prompts, count, sampling, mask, state, seed, rows, stop, pieces, constraint)
    for tokens in call.steps():
        if on_token is not None:
            for token in tokens:
                on_token(token)
    return call.record.generated()


def write(model: Any, prompts: Any, count: Any, **options: Any) -> Iterator[Token]:
    """`generate` as an iterator over `Token`s as they come. Takes the options of `generate` other than `on_token`.

    >>> from wonderland.models import Decoder
    >>> [token.row for token in write(Decoder(vocab=10, dim=8, depth=1), [[1], [2, 3]], 2)]
    [0, 1, 0, 1]
    """
    rules, others = Sampling.__dataclass_fields__, ("mask", "state", "seed", "rows", "stop", "pieces", "constraint")
    for name in options:
        if name not in rules and name not in others:
            raise WonderlandError(f"write has no option {name!r}.{nearest(name, [*rules, *others])}")
    sampling = Sampling(**{name: value for name, value in options.items() if name in rules})
    call = _Generation(
        model, prompts, count, sampling, **{name: value for name, value in options.items() if name in others}
    )
    return (token for tokens in call.steps() for token in tokens)


class _Generation:
    """One call of `generate`: its checked arguments, and the loop over steps."""

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
        count, seed = token_count(count), integer(seed, "seed is", None)
        self.reader, self.sampling, self.count, self.state = Reader(model), sampling, count, state
        self.prompts = prompts if isinstance(prompts, Prompts) else read_prompts(prompts, mask, model)
        if state is None:
            check_context(model, self.prompts, count)
        vocab, size = getattr(model, "vocab", None), len(self.prompts.lists)
        self._pieces = (pieces, None if constraint is None else constraint.pieces)
        self._check_pieces(vocab)
        self.stops = Stops(stop, pieces if pieces is not None or constraint is None else constraint.pieces, vocab)
        if constraint is not None:
            if self.stops.strings:
                raise WonderlandError(
                    "A stop string could cut off a text before the constraint is met: give only one of them."
                )
            constraint = constraint.without(self.stops.tokens)
            constraint.check(count)
        self.constraint, self.record = constraint, Record(size, count, self.stops, constraint)
        names = row_names(rows, size)
        self.uniforms = None if sampling.greedy else Uniforms(seed, names)

    def steps(self) -> Iterator[list[Token]]:
        """The tokens of each step, for the rows that have not ended."""
        ended = self.record.ended
        batch_rows = list(range(len(ended)))  # the row of the result that each row of the batch belongs to
        if self.constraint is not None and self.constraint.final(self.constraint.start, self.count):
            ended[:] = ["constraint"] * len(batch_rows)
            return
        logits, state = self.reader.begin(self.prompts, self.state)
        self.state = None
        self._check_pieces(logits.shape[-1])
        state = self.reader.walk(state)
        device, seen = logits.device, self._seen(logits)
        for step in range(self.count):
            chosen = self._choose(logits, seen, batch_rows, step)
            yield [
                self.record.take(row, token) for row, token in zip(batch_rows, chosen, strict=True) if not ended[row]
            ]
            live = [index for index, row in enumerate(batch_rows) if not ended[row]]
            if not live:
                return
            # Ended rows are dropped once they are a quarter of the batch: copying the state costs as much as several steps.
            if 4 * len(live) <= 3 * len(batch_rows):
                kept = torch.tensor(live, device=device)
                state = self.reader.walk(self.reader.rows(state, kept))
                seen = None if seen is None else seen[kept]
                batch_rows, chosen = [batch_rows[index] for index in live], [chosen[index] for index in live]
                if self.uniforms is not None:
                    self.uniforms.keep(live)
            if seen is not None:
                seen[range(len(chosen)), chosen] = True
            logits, state = self.reader.step(chosen, state, device)

    def _check_pieces(self, vocab: int | None) -> None:
        for pieces in self._pieces:
            check_pieces(pieces, vocab)

    def _choose(self, logits: Tensor, seen: Tensor | None, batch_rows: list[int], step: int) -> list[int]:
        with torch.no_grad():
            if self.constraint is not None:
                logits = self._constrain(logits, batch_rows, step)
            chosen = self.sampling.choose(logits, None if self.uniforms is None else self.uniforms.at(step), seen)
        if min(chosen) < 0:
            for index, (row, token) in enumerate(zip(batch_rows, chosen, strict=True)):
                if token < 0 and not self.record.ended[row]:
                    raise_no_token(logits[index], row, step)
            chosen = [max(token, 0) for token in chosen]
        return chosen

    def _constrain(self, logits: Tensor, batch_rows: list[int], step: int) -> Tensor:
        """Logits with -inf for the tokens that the constraint forbids."""
        assert self.constraint is not None
        masks = []
        for row in batch_rows:
            state = self.record.constraint_states[row]
            allowed = self.constraint.allowed(state, self.count - step)
            if self.stops.tokens:
                allowed = allowed.clone()
                allowed[list(self.stops.tokens)] = self.constraint.accepts(state)
            masks.append(allowed)
        return logits.masked_fill(~torch.stack(masks).to(logits.device), -torch.inf)

    def _seen(self, logits: Tensor) -> Tensor | None:
        """Which tokens occur in each prompt (b, vocab), for the repetition penalty."""
        if not self.sampling.penalizes:
            return None
        seen = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
        for row, tokens in enumerate(self.prompts.lists):
            seen[row, tokens] = True
        return seen


def row_names(rows: Sequence[int] | None, size: int) -> list[int]:
    """The names of rows, from which their random numbers are derived."""
    names = list(range(size)) if rows is None else [int(row) for row in rows]
    if len(names) != size:
        raise WonderlandError(f"rows has {len(names)} names and there are {size} prompts: give one for each.")
    return names


def raise_no_token(logits: Tensor, row: int, step: int) -> None:
    """Raise, because no token can be chosen from a row of logits."""
    problem = "logits that are not numbers" if bool(logits.isnan().any()) else "no finite logit for an allowed token"
    raise WonderlandError(
        f"The model gives {problem} in row {row}, after {step} new tokens: look for NaN and infinity in its weights."
    )
