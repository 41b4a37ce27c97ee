"""Automata over bytes: a tree of expressions becomes a table that says, byte by byte, whether a text can still match."""

from dataclasses import dataclass

import numpy as np

from wonderland.core import WonderlandError
from wonderland.generation.grammar.characters import utf8
from wonderland.generation.grammar.expressions import Chars, Either, Expression, Listed, Some, Then, Times

MOST_NODES = 100_000
MOST_STATES = 10_000
_MOST_WORK = 20_000_000  # pairs of a set of nodes and a kind of byte; a few seconds


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton: state 0 begins, and every state can still reach an accepting one.

    - `kinds` (256,): bytes that no expression tells apart are of one kind.
    - `table` (states + 1, kinds): the next state, -1 where no text goes on; the last row is that of -1.
    - `accepting` (states,): whether a text may end there.
    """

    kinds: np.ndarray
    table: np.ndarray
    accepting: np.ndarray

    def matches(self, text: bytes) -> bool:
        """Whether a text is one of the set.

        >>> from wonderland.generation.grammar.regex import parse
        >>> [build(parse("[ab]+c")).matches(text) for text in (b"abac", b"ab")]
        [True, False]
        """
        state = 0
        for byte in text:
            state = self.table[state, self.kinds[byte]]
        return bool(state >= 0 and self.accepting[state])


class Empty(WonderlandError):
    """An expression has no text."""


def build(expression: Expression) -> Automaton:
    """The automaton of an expression; a sentence where it would be too large, or match nothing."""
    nodes = _Nodes()
    end = nodes.add(expression, nodes.new())
    return _determine(nodes, end)


class _Nodes:
    """An automaton with choices: moves by ranges of bytes, and moves that take nothing."""

    def __init__(self):
        self.moves: list[list[tuple[int, int, int]]] = []
        self.free: list[list[int]] = []

    def new(self) -> int:
        if len(self.moves) >= MOST_NODES:
            raise WonderlandError(
                f"The expression needs more than {MOST_NODES:,} nodes: make its repetitions smaller or nest it less."
            )
        self.moves.append([])
        self.free.append([])
        return len(self.moves) - 1

    def add(self, part: Expression, start: int) -> int:
        """Lay an expression from a node on; returns the node where it ends."""
        if isinstance(part, Chars):
            return self._characters(part, start)
        if isinstance(part, Then):
            for one in part.parts:
                start = self.add(one, start)
            return start
        if isinstance(part, Either):
            end = self.new()
            for one in part.parts:
                begin = self.new()
                self.free[start].append(begin)
                self.free[self.add(one, begin)].append(end)
            return end
        if isinstance(part, Times):
            return self._times(part, start)
        if isinstance(part, Listed):
            begin = self.new()
            self.free[start].append(begin)
            end = self.add(part.part, begin)
            again = self.add(part.separator, end)
            self.free[again].append(begin)
            return self._after(end)
        if isinstance(part, Some):
            return self._some(part, start)
        try:
            return self._embed(_meet(build(part.one), build(part.other)), start)
        except Empty:
            return self.new()  # nothing leads there

    def _after(self, node: int) -> int:
        """A node behind one with moves of its own, so that what follows is not entered from them."""
        end = self.new()
        self.free[node].append(end)
        return end

    def _characters(self, part: Chars, start: int) -> int:
        end = self.new()
        # Ends of characters are shared: most of Unicode ends in the same ranges of bytes.
        tails: dict[tuple, int] = {(): end}
        for spelled in utf8(part.ranges):
            for at in range(len(spelled) - 1, 0, -1):
                rest = spelled[at:]
                if rest not in tails:
                    tails[rest] = self.new()
                    self.moves[tails[rest]].append((*rest[0], tails[rest[1:]]))
            self.moves[start].append((*spelled[0], tails[spelled[1:]]))
        return end

    def _times(self, part: Times, start: int) -> int:
        endless = part.most is None
        copies = max(part.least - 1, 0) if endless else part.least
        for _ in range(copies):
            start = self.add(part.part, start)
        if endless:
            begin = self.new()
            self.free[start].append(begin)
            last = self.add(part.part, begin)
            self.free[last].append(begin)
            return self._after(begin if part.least == 0 else last)
        end = self.new()
        self.free[start].append(end)
        assert part.most is not None
        for _ in range(part.most - part.least):
            begin = self.new()
            self.free[start].append(begin)
            start = self.add(part.part, begin)
            self.free[start].append(end)
        return end

    def _some(self, part: Some, start: int) -> int:
        # Two tracks, before and after the first part that is there, so that each part is laid once.
        none: int | None = start
        some: int | None = None
        for one, needed in part.parts:
            begin, after = self.new(), self.new()
            if none is not None:
                self.free[none].append(begin)
            if some is not None:
                self.free[self.add(part.separator, some)].append(begin)
                if not needed:
                    self.free[some].append(after)
            self.free[self.add(one, begin)].append(after)
            none, some = None if needed else none, after
        end = self.new()
        for node in (none, some):
            if node is not None:
                self.free[node].append(end)
        return end

    def _embed(self, automaton: Automaton, start: int) -> int:
        states = [self.new() for _ in automaton.accepting]
        end = self.new()
        self.free[start].append(states[0])
        runs = _runs(automaton.kinds)
        for state, node in enumerate(states):
            if automaton.accepting[state]:
                self.free[node].append(end)
            for low, high, kind in runs:
                target = int(automaton.table[state, kind])
                if target >= 0:
                    self.moves[node].append((low, high, states[target]))
        return end


def _runs(kinds: np.ndarray) -> list[tuple[int, int, int]]:
    """Ranges of neighbouring bytes of one kind."""
    found, low = [], 0
    for byte in range(1, 257):
        if byte == 256 or kinds[byte] != kinds[low]:
            found.append((low, byte - 1, int(kinds[low])))
            low = byte
    return found


def _determine(nodes: _Nodes, end: int) -> Automaton:
    """Follow all choices at once: each set of nodes becomes a state."""
    cuts = sorted(
        {0, *(cut for moves in nodes.moves for low, high, _ in moves for cut in (low, high + 1) if cut < 256)}
    )
    kinds = np.searchsorted(cuts, np.arange(256), side="right") - 1
    moves = [[(int(kinds[low]), int(kinds[high]), target) for low, high, target in own] for own in nodes.moves]
    reached = _reached(nodes.free, {node for node, own in enumerate(moves) if own} | {end})
    start = reached[0]
    states, order = {start: 0}, [start]
    joined: dict[frozenset[int], int] = {}
    rows, work = [], 0
    for state in order:
        targets: list[set[int]] = [set() for _ in cuts]
        for node in state:
            for low, high, target in moves[node]:
                for kind in range(low, high + 1):
                    targets[kind].add(target)
                work += high - low + 1
        row = []
        for found in targets:
            key = frozenset(found)
            if key not in joined:
                whole = frozenset().union(*(reached[node] for node in key)) if key else frozenset()
                work += len(whole)
                if whole and whole not in states:
                    states[whole] = len(order)
                    order.append(whole)
                joined[key] = states[whole] if whole else -1
            row.append(joined[key])
        rows.append(row)
        _bound(len(order), work)
    accepting = np.array([end in state for state in order])
    return _trim(kinds, np.array(rows), accepting)


def _reached(free: list[list[int]], wanted: set[int]) -> list[frozenset[int]]:
    """For each node, those wanted that are reached from it without taking a byte."""
    found = []
    for node in range(len(free)):
        seen, open_ = {node}, [node]
        while open_:
            for target in free[open_.pop()]:
                if target not in seen:
                    seen.add(target)
                    open_.append(target)
        found.append(frozenset(seen & wanted))
    return found


def _bound(states: int, work: int) -> None:
    if states > MOST_STATES or work > _MOST_WORK:
        raise WonderlandError(
            f"The expression needs more than {MOST_STATES:,} states: make its repetitions smaller or nest it less."
        )


def _meet(one: Automaton, other: Automaton) -> Automaton:
    """What two automata both accept: their states in pairs."""
    pairs, kinds = np.unique(np.stack([one.kinds, other.kinds]), axis=1, return_inverse=True)
    states, order, rows = {(0, 0): 0}, [(0, 0)], []
    for a, b in order:
        row = []
        for target in zip(one.table[a, pairs[0]].tolist(), other.table[b, pairs[1]].tolist(), strict=True):
            if min(target) < 0:
                row.append(-1)
                continue
            if target not in states:
                states[target] = len(order)
                order.append(target)
            row.append(states[target])
        rows.append(row)
        _bound(len(order), 0)
    accepting = np.array([one.accepting[a] and other.accepting[b] for a, b in order])
    return _trim(kinds.reshape(256), np.array(rows), accepting)


def _trim(kinds: np.ndarray, table: np.ndarray, accepting: np.ndarray) -> Automaton:
    """Without the states from which nothing is accepted, and kinds of bytes that have become one."""
    alive = accepting.copy()
    before: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table.tolist()):
        for target in set(row):
            if target >= 0:
                before[target].append(state)
    open_ = np.flatnonzero(alive).tolist()
    while open_:
        for state in before[open_.pop()]:
            if not alive[state]:
                alive[state] = True
                open_.append(state)
    if not alive[0]:
        raise Empty("The expression matches no text at all.")
    names = np.append(np.where(alive, np.cumsum(alive) - 1, -1), -1)
    table = names[table[alive]]
    columns, merged = np.unique(table, axis=1, return_inverse=True)
    dead = np.full((1, columns.shape[1]), -1)
    return Automaton(
        merged.reshape(-1)[kinds].astype(np.uint8), np.concatenate([columns, dead]).astype(np.int32), accepting[alive]
    )
