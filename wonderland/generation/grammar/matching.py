"""Texts that match: which tokens may come next, from the bytes that tokens write and an automaton over bytes."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.constraint import Constraint
from wonderland.generation.grammar.automaton import Automaton, build
from wonderland.generation.grammar.expressions import behind_a_space
from wonderland.generation.grammar.regex import parse

_NEVER = np.iinfo(np.int32).max // 2


def matching(pattern: str, pieces: Any, *, strip: bool = False) -> Constraint:
    r"""Only texts that a regular expression matches from end to end; see `grammar.regex` for what is understood.

    `pieces` are the bytes that each token writes (a tokenizer's `pieces()`); tokens that write nothing are never chosen. A
    text may end only where it matches: there the tokens in `stop` are allowed, and nowhere else. Where the number of tokens
    is limited, only those are allowed after which the text can be completed in time. With `strip`, the text matches without
    the space it may begin with, as tokenizers write one before a first word.

    >>> from wonderland.models import Decoder
    >>> from wonderland.generation import generate
    >>> pieces = [bytes([code]) for code in range(128)]
    >>> model = Decoder(vocab=128, dim=8, depth=1)
    >>> text = generate(model, [[1]], 9, constraint=matching(r"[a-c]{2}-\d+", pieces)).texts[0]
    >>> text[2:3], text[3:].isdigit()
    (b'-', True)
    """
    found = parse(pattern)
    return Matching(build(behind_a_space(found) if strip else found), pieces)


class Matching(Constraint):
    """An automaton over bytes, walked by tokens: all tokens at once, down a tree of their beginnings.

    Tokens whose bytes the automaton does not tell apart are one to it. For each state that tokens lead to, `distance` says
    how many tokens at least complete the text; states that none can complete are never entered.
    """

    start = 0

    def __init__(self, automaton: Automaton, pieces: Any):
        self.pieces, self._automaton = _checked(pieces), automaton
        self._others: dict[frozenset[int], Matching] = {}
        self._tree()
        self._explore()
        if self.distance[0] >= _NEVER:
            raise WonderlandError(
                "No text that matches can be written with these pieces: the vocabulary lacks bytes that it needs."
            )
        self._mask = lru_cache(1024)(self._plain)

    def allowed(self, state: Any, left: int) -> Tensor:
        if left > self._farthest[state]:
            return self._mask(state)
        return self._select(self._targets(state), left)

    def after(self, state: Any, token: int) -> Any:
        table, kinds = self._automaton.table, self._automaton.kinds
        for byte in self.pieces[token]:
            state = int(table[state, kinds[byte]])
        return state

    def accepts(self, state: Any) -> bool:
        return bool(self._automaton.accepting[state])

    def final(self, state: Any, left: int) -> bool:
        return self.accepts(state) and bool(self._nearest[state] >= left)

    def check(self, count: int) -> None:
        if self.distance[0] > count:
            raise WonderlandError(
                f"The shortest text that matches takes {self.distance[0]} tokens, and count is {count}: ask for more."
            )

    def without(self, tokens: frozenset[int]) -> "Constraint":
        if not any(self.pieces[token] for token in tokens):
            return self
        if tokens not in self._others:
            pieces = [b"" if token in tokens else piece for token, piece in enumerate(self.pieces)]
            self._others[tokens] = Matching(self._automaton, pieces)
        return self._others[tokens]

    def _tree(self) -> None:
        """Tokens as sequences of kinds of bytes, those in a tree whose places are numbered level by level.

        In sorted order the children of a place stand together: its first child and their number find them all.
        """
        kinds = bytes(self._automaton.kinds.tolist())
        spelled = [piece.translate(kinds) for piece in self.pieces]
        groups = {one: index for index, one in enumerate(sorted({one for one in spelled if one}))}
        self._group = np.array([groups.get(one, -1) for one in spelled])
        self._ends = np.zeros(len(groups), np.int64)
        taken, parents = [0], [0]
        level, open_, depth = {b"": 0}, list(groups), 0
        while open_:
            fresh: dict[bytes, int] = {}
            for one in open_:
                begin = one[: depth + 1]
                if begin not in fresh:
                    fresh[begin] = len(taken)
                    taken.append(begin[-1])
                    parents.append(level[begin[:-1]])
                if len(one) == depth + 1:
                    self._ends[groups[one]] = fresh[begin]
            level, depth = fresh, depth + 1
            open_ = [one for one in open_ if len(one) > depth]
        self._taken = np.array(taken)
        self._children = np.bincount(parents[1:], minlength=len(taken))
        self._first = 1 + self._children.cumsum() - self._children

    def _targets(self, state: int) -> np.ndarray:
        """The state after each group of tokens, -1 where nothing matches any more; only living branches are walked."""
        table, at = self._automaton.table, np.full(len(self._taken), -1, np.int32)
        at[0], alive = state, np.zeros(1, np.int64)
        while len(alive):
            children = self._children[alive]
            ends = children.cumsum()
            below = np.arange(ends[-1]) + np.repeat(self._first[alive] - ends + children, children)
            after = table[np.repeat(at[alive], children), self._taken[below]]
            lives = after >= 0
            alive = below[lives]
            at[alive] = after[lives]
        return at[self._ends]

    def _explore(self) -> None:
        """Every state that tokens lead to, and how far it is from a complete text, counted in tokens."""
        accepting = self._automaton.accepting
        before: dict[int, list[int]] = {0: []}
        after: dict[int, np.ndarray] = {}
        order = [0]
        for state in order:
            targets = np.unique(self._targets(state)) if len(self._ends) else np.empty(0, np.int64)
            after[state] = targets = targets[targets >= 0]
            for target in targets.tolist():
                if target not in before:
                    before[target] = []
                    order.append(target)
                before[target].append(state)
        distance = np.full(len(accepting) + 1, _NEVER, np.int32)
        ring = [state for state in order if accepting[state]]
        distance[ring] = 0
        steps = 0
        while ring:
            steps += 1
            ring = [state for target in ring for state in before[target] if distance[state] == _NEVER]
            distance[ring] = steps
            ring = list(set(ring))
        self.distance, self._nearest, self._farthest = distance, distance.copy(), np.zeros_like(distance)
        for state, targets in after.items():
            ways = distance[targets]
            ways = ways[ways < _NEVER]
            self._nearest[state] = ways.min(initial=_NEVER)
            self._farthest[state] = ways.max(initial=0)

    def _plain(self, state: int) -> Tensor:
        return self._select(self._targets(state), _NEVER)

    def _select(self, targets: np.ndarray, left: int) -> Tensor:
        # The last entries stand for no target at all, and for tokens that write nothing.
        good = np.append(self.distance[targets] < left, False)
        return torch.from_numpy(good[self._group])


def _checked(pieces: Any) -> Sequence[bytes]:
    if isinstance(pieces, str | bytes) or not isinstance(pieces, Sequence) or not pieces:
        raise WonderlandError("pieces is a list of the bytes that each token writes (a tokenizer's pieces()).")
    for token, piece in enumerate(pieces):
        if not isinstance(piece, bytes):
            raise WonderlandError(f"The piece of token {token} is a {type(piece).__name__} where bytes belong.")
    return pieces
