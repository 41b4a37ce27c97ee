"""Constraints from automata: which tokens may come next, given the bytes of each token and an automaton over bytes."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from wonderland.core import WonderlandError
from wonderland.generation.constraint import Constraint
from wonderland.generation.grammar.automaton import Automaton, build
from wonderland.generation.grammar.expressions import allow_leading_space
from wonderland.generation.grammar.regex import parse

_UNREACHABLE = np.iinfo(np.int32).max // 2


def matching(pattern: str, pieces: Any, *, strip: bool = False) -> Constraint:
    r"""A constraint under which the whole text matches a regular expression; `grammar.regex` lists the supported syntax.

    `pieces` are the bytes of each token (a tokenizer's `pieces()`); tokens without bytes are never chosen. The tokens in `stop`
    are allowed only where the text matches. A token is allowed only if the text can still be completed within the number of
    tokens that is left. With `strip`, one leading space is ignored, since tokenizers often write one before the first word.

    >>> from wonderland.models import Decoder
    >>> from wonderland.generation import generate
    >>> pieces = [bytes([code]) for code in range(128)]
    >>> model = Decoder(vocab=128, dim=8, depth=1)
    >>> text = generate(model, [[1]], 9, constraint=matching(r"[a-c]{2}-\d+", pieces)).texts[0]
    >>> text[2:3], text[3:].isdigit()
    (b'-', True)
    """
    expression = parse(pattern)
    return Matching(build(allow_leading_space(expression) if strip else expression), pieces)


class Matching(Constraint):
    """The texts of an automaton over bytes, for a vocabulary of tokens.

    Tokens are grouped by the byte classes that they spell, and the groups form a prefix tree, so that all tokens advance a
    state together. `distance` holds, for each state, the least number of tokens that complete the text.
    """

    start = 0

    def __init__(self, automaton: Automaton, pieces: Any):
        self.pieces, self._automaton = _checked(pieces), automaton
        self._without: dict[frozenset[int], Matching] = {}
        self._build_tree()
        self._measure_distances()
        if self.distance[0] >= _UNREACHABLE:
            raise WonderlandError(
                "No matching text can be written with these pieces: the vocabulary lacks bytes that it needs."
            )
        self._mask = lru_cache(1024)(self._mask_without_limit)

    def allowed(self, state: Any, left: int) -> Tensor:
        if left > self._farthest[state]:
            return self._mask(state)
        return self._select(self._targets(state), left)

    def after(self, state: Any, token: int) -> Any:
        table, byte_classes = self._automaton.table, self._automaton.byte_classes
        for byte in self.pieces[token]:
            state = int(table[state, byte_classes[byte]])
        return state

    def accepts(self, state: Any) -> bool:
        return bool(self._automaton.accepting[state])

    def final(self, state: Any, left: int) -> bool:
        return self.accepts(state) and bool(self._nearest[state] >= left)

    def check(self, count: int) -> None:
        if self.distance[0] > count:
            raise WonderlandError(
                f"The shortest matching text takes {self.distance[0]} tokens, but count is {count}: give a larger count."
            )

    def without(self, tokens: frozenset[int]) -> "Constraint":
        if not any(self.pieces[token] for token in tokens):
            return self
        if tokens not in self._without:
            pieces = [b"" if token in tokens else piece for token, piece in enumerate(self.pieces)]
            self._without[tokens] = Matching(self._automaton, pieces)
        return self._without[tokens]

    def _build_tree(self) -> None:
        """The prefix tree of tokens, spelled in byte classes. Tokens with equal spelling form a group.

        Nodes are numbered level by level in sorted order, so that the children of a node are consecutive:

        - `_group` (vocab,): the group of each token, -1 for tokens without bytes;
        - `_group_node` (groups,): the node at which a group ends;
        - `_node_class`, `_children`, `_first_child` (nodes,): the byte class that leads to a node, the number of its children,
          and the first of them.
        """
        byte_classes = bytes(self._automaton.byte_classes.tolist())
        spellings = [piece.translate(byte_classes) for piece in self.pieces]
        groups = {spelling: index for index, spelling in enumerate(sorted({text for text in spellings if text}))}
        self._group = np.array([groups.get(spelling, -1) for spelling in spellings])
        self._group_node = np.zeros(len(groups), np.int64)
        classes, parents = [0], [0]
        level, longer, depth = {b"": 0}, list(groups), 0
        while longer:
            next_level: dict[bytes, int] = {}
            for spelling in longer:
                prefix = spelling[: depth + 1]
                if prefix not in next_level:
                    next_level[prefix] = len(classes)
                    classes.append(prefix[-1])
                    parents.append(level[prefix[:-1]])
                if len(spelling) == depth + 1:
                    self._group_node[groups[spelling]] = next_level[prefix]
            level, depth = next_level, depth + 1
            longer = [spelling for spelling in longer if len(spelling) > depth]
        self._node_class = np.array(classes)
        self._children = np.bincount(parents[1:], minlength=len(classes))
        self._first_child = 1 + self._children.cumsum() - self._children

    def _targets(self, state: int) -> np.ndarray:
        """The state after each group of tokens, -1 where the text cannot match; only branches that can match are followed."""
        table, states = self._automaton.table, np.full(len(self._node_class), -1, np.int32)
        states[0], nodes = state, np.zeros(1, np.int64)
        while len(nodes):
            children = self._children[nodes]
            ends = children.cumsum()
            below = np.arange(ends[-1]) + np.repeat(self._first_child[nodes] - ends + children, children)
            after = table[np.repeat(states[nodes], children), self._node_class[below]]
            possible = after >= 0
            nodes = below[possible]
            states[nodes] = after[possible]
        return states[self._group_node]

    def _measure_distances(self) -> None:
        """The distance of every reachable state from a complete text, in tokens, by breadth-first search backwards.

        `_nearest` and `_farthest` are the least and the largest distance among the states after one more token.
        """
        accepting = self._automaton.accepting
        predecessors: dict[int, list[int]] = {0: []}
        successors: dict[int, np.ndarray] = {}
        order = [0]
        for state in order:
            targets = np.unique(self._targets(state)) if len(self._group_node) else np.empty(0, np.int64)
            successors[state] = targets = targets[targets >= 0]
            for target in targets.tolist():
                if target not in predecessors:
                    predecessors[target] = []
                    order.append(target)
                predecessors[target].append(state)
        distance = np.full(len(accepting) + 1, _UNREACHABLE, np.int32)
        frontier = [state for state in order if accepting[state]]
        distance[frontier] = 0
        steps = 0
        while frontier:
            steps += 1
            before = [state for target in frontier for state in predecessors[target] if distance[state] == _UNREACHABLE]
            distance[before] = steps
            frontier = list(set(before))
        self.distance, self._nearest, self._farthest = distance, distance.copy(), np.zeros_like(distance)
        for state, targets in successors.items():
            distances = distance[targets]
            distances = distances[distances < _UNREACHABLE]
            self._nearest[state] = distances.min(initial=_UNREACHABLE)
            self._farthest[state] = distances.max(initial=0)

    def _mask_without_limit(self, state: int) -> Tensor:
        return self._select(self._targets(state), _UNREACHABLE)

    def _select(self, targets: np.ndarray, left: int) -> Tensor:
        # Target -1 selects the last distance, which is unreachable, and group -1 the last entry, False.
        allowed = np.append(self.distance[targets] < left, False)
        return torch.from_numpy(allowed[self._group])


def _checked(pieces: Any) -> Sequence[bytes]:
    if isinstance(pieces, str | bytes) or not isinstance(pieces, Sequence) or not pieces:
        raise WonderlandError("pieces is a list with the bytes of each token (a tokenizer's pieces()).")
    for token, piece in enumerate(pieces):
        if not isinstance(piece, bytes):
            raise WonderlandError(f"The piece of token {token} is a {type(piece).__name__}, not bytes.")
    return pieces
