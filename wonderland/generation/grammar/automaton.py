"""Finite automata over bytes: an expression to a nondeterministic automaton, and that to a deterministic table."""

from dataclasses import dataclass

import numpy as np

from wonderland.core import WonderlandError
from wonderland.generation.grammar.characters import utf8
from wonderland.generation.grammar.expressions import (
    CharSet,
    Concat,
    Expression,
    Intersection,
    OptionalParts,
    Repeat,
    SeparatedList,
    Union,
    node_count,
    simplified,
)

MAX_NODES = 100_000
MAX_STATES = 10_000
_MAX_WORK = 1_000_000  # visited nodes, byte classes and members of sets: about half a second


@dataclass(frozen=True)
class Automaton:
    """A deterministic automaton that starts in state 0; from every state an accepting one can be reached.

    - `byte_classes` (256,): the class of each byte; bytes with the same transitions in every state share a class.
    - `table` (states + 1, classes): the next state, or -1 if no match is possible; the last row, of state -1, is all -1.
    - `accepting` (states,): whether a text may end there.
    """

    byte_classes: np.ndarray
    table: np.ndarray
    accepting: np.ndarray

    def matches(self, text: bytes) -> bool:
        """Whether the whole text matches.

        >>> from wonderland.generation.grammar.regex import parse
        >>> [build(parse("[ab]+c")).matches(text) for text in (b"abac", b"ab")]
        [True, False]
        """
        state = 0
        for byte in text:
            state = self.table[state, self.byte_classes[byte]]
        return bool(state >= 0 and self.accepting[state])


class Empty(WonderlandError):
    """An expression that matches no text."""


class _Budget:
    """The work that one build may take, intersections inside it included."""

    def __init__(self):
        self.left = _MAX_WORK

    def spend(self, work: int) -> None:
        """Count work before it is done; raises when there is too much."""
        self.left -= work
        if self.left < 0:
            raise WonderlandError(
                "The expression takes too long to build: make its repetitions smaller, nest it less, or give fewer choices."
            )


def build(expression: Expression) -> Automaton:
    """The deterministic automaton of an expression; raises if it would be too large, or match nothing.

    The size is counted on the expression before anything is built, and work while it is done, so that an expression that
    is too large is refused within a second.
    """
    return _build(simplified(expression), _Budget(), {})


def _build(expression: Expression, budget: _Budget, intersections: dict[int, Automaton | None]) -> Automaton:
    nodes, visits = node_count(expression)
    if nodes > MAX_NODES or visits > _MAX_WORK:
        raise too_many_nodes()
    nfa = _NFA(budget, intersections)
    end = nfa.add(expression, nfa.new())
    return _determinize(nfa, end, budget)


def too_many_nodes() -> WonderlandError:
    """The error for an expression that is too large."""
    return WonderlandError(
        f"The expression needs more than {MAX_NODES:,} nodes: make its repetitions smaller or nest it less."
    )


class _NFA:
    """A nondeterministic automaton: transitions (low byte, high byte, target), and epsilon transitions that take no byte."""

    def __init__(self, budget: _Budget, intersections: dict[int, Automaton | None]):
        self.budget, self.intersections = budget, intersections
        self.transitions: list[list[tuple[int, int, int]]] = []
        self.epsilon: list[list[int]] = []

    def new(self) -> int:
        """A new node."""
        if len(self.transitions) >= MAX_NODES:
            raise too_many_nodes()
        self.budget.spend(1)
        self.transitions.append([])
        self.epsilon.append([])
        return len(self.transitions) - 1

    def add(self, part: Expression, start: int) -> int:
        """Add an expression that starts at a node; returns the node where it ends."""
        self.budget.spend(1)
        if isinstance(part, CharSet):
            return self._characters(part, start)
        if isinstance(part, Concat):
            for item in part.parts:
                start = self.add(item, start)
            return start
        if isinstance(part, Union):
            end = self.new()
            for item in part.parts:
                begin = self.new()
                self.epsilon[start].append(begin)
                self.epsilon[self.add(item, begin)].append(end)
            return end
        if isinstance(part, Repeat):
            return self._repeat(part, start)
        if isinstance(part, SeparatedList):
            begin = self.new()
            self.epsilon[start].append(begin)
            end = self.add(part.part, begin)
            separated = self.add(part.separator, end)
            self.epsilon[separated].append(begin)
            return self._exit(end)
        if isinstance(part, OptionalParts):
            return self._optional_parts(part, start)
        if id(part) not in self.intersections:  # parts outlive the build, since the expression holds them
            self.intersections[id(part)] = self._intersection(part)
        both = self.intersections[id(part)]
        return self.new() if both is None else self._embed(both, start)  # a new node alone cannot be reached

    def _intersection(self, part: Intersection) -> Automaton | None:
        try:
            left, right = (_build(side, self.budget, self.intersections) for side in (part.left, part.right))
            return _intersect(left, right, self.budget)
        except Empty:
            return None

    def _exit(self, node: int) -> int:
        """A new node after one that is part of a loop, so that what follows cannot enter the loop again."""
        end = self.new()
        self.epsilon[node].append(end)
        return end

    def _characters(self, part: CharSet, start: int) -> int:
        end = self.new()
        # Nodes for the last bytes of characters are shared: most of Unicode ends in the same ranges of bytes.
        suffixes: dict[tuple, int] = {(): end}
        for byte_ranges in utf8(part.ranges):
            self.budget.spend(1)
            for at in range(len(byte_ranges) - 1, 0, -1):
                suffix = byte_ranges[at:]
                if suffix not in suffixes:
                    suffixes[suffix] = self.new()
                    self.transitions[suffixes[suffix]].append((*suffix[0], suffixes[suffix[1:]]))
            self.transitions[start].append((*byte_ranges[0], suffixes[byte_ranges[1:]]))
        return end

    def _repeat(self, part: Repeat, start: int) -> int:
        unbounded = part.most is None
        copies = max(part.least - 1, 0) if unbounded else part.least
        for _ in range(copies):
            start = self.add(part.part, start)
        if unbounded:
            begin = self.new()
            self.epsilon[start].append(begin)
            last = self.add(part.part, begin)
            self.epsilon[last].append(begin)
            return self._exit(begin if part.least == 0 else last)
        end = self.new()
        self.epsilon[start].append(end)
        assert part.most is not None
        for _ in range(part.most - part.least):
            begin = self.new()
            self.epsilon[start].append(begin)
            start = self.add(part.part, begin)
            self.epsilon[start].append(end)
        return end

    def _optional_parts(self, part: OptionalParts, start: int) -> int:
        # `none` is the node before any part was present, `after_part` the one after at least one: each part is added once.
        none: int | None = start
        after_part: int | None = None
        for item, required in part.parts:
            begin, after = self.new(), self.new()
            if none is not None:
                self.epsilon[none].append(begin)
            if after_part is not None:
                self.epsilon[self.add(part.separator, after_part)].append(begin)
                if not required:
                    self.epsilon[after_part].append(after)
            self.epsilon[self.add(item, begin)].append(after)
            none, after_part = None if required else none, after
        end = self.new()
        for node in (none, after_part):
            if node is not None:
                self.epsilon[node].append(end)
        return end

    def _embed(self, automaton: Automaton, start: int) -> int:
        """Add a deterministic automaton as nodes."""
        nodes = [self.new() for _ in automaton.accepting]
        end = self.new()
        self.epsilon[start].append(nodes[0])
        class_ranges = _class_ranges(automaton.byte_classes)
        self.budget.spend(len(nodes) * len(class_ranges))
        for state, node in enumerate(nodes):
            if automaton.accepting[state]:
                self.epsilon[node].append(end)
            for low, high, byte_class in class_ranges:
                target = int(automaton.table[state, byte_class])
                if target >= 0:
                    self.transitions[node].append((low, high, nodes[target]))
        return end


def _class_ranges(byte_classes: np.ndarray) -> list[tuple[int, int, int]]:
    """Ranges (low, high, class) of neighbouring bytes of one class."""
    ranges, low = [], 0
    for byte in range(1, 257):
        if byte == 256 or byte_classes[byte] != byte_classes[low]:
            ranges.append((low, byte - 1, int(byte_classes[low])))
            low = byte
    return ranges


def _determinize(nfa: _NFA, end: int, budget: _Budget) -> Automaton:
    """The subset construction: each reachable set of nodes becomes a state."""
    boundaries = {0}
    for transitions in nfa.transitions:
        for low, high, _ in transitions:
            boundaries |= {low, high + 1}
    cuts = sorted(boundaries - {256})
    classes = np.searchsorted(cuts, np.arange(256), side="right") - 1
    transitions = [
        [(int(classes[low]), int(classes[high]), node) for low, high, node in own] for own in nfa.transitions
    ]
    entered = {0} | {target for own in transitions for _, _, target in own}
    closures = _epsilon_closures(
        nfa.epsilon, entered, {node for node, own in enumerate(transitions) if own} | {end}, budget
    )
    start = closures[0]
    states, order = {start: 0}, [start]
    state_of_targets: dict[frozenset[int], int] = {}
    rows = []
    for subset in order:
        budget.spend(len(subset) + len(cuts))
        targets: list[set[int]] = [set() for _ in cuts]
        for node in subset:
            for low, high, target in transitions[node]:
                budget.spend(high - low + 1)
                for byte_class in range(low, high + 1):
                    targets[byte_class].add(target)
        row = []
        for nodes in map(frozenset, targets):
            if nodes not in state_of_targets:
                parts = [closures[node] for node in nodes]
                budget.spend(sum(map(len, parts)) // 16 + 1)
                closure = frozenset().union(*parts)
                if closure and closure not in states:
                    states[closure] = len(order)
                    order.append(closure)
                state_of_targets[nodes] = states[closure] if closure else -1
            row.append(state_of_targets[nodes])
        rows.append(row)
        check_states(len(order))
    accepting = np.array([end in subset for subset in order])
    return _trim(classes, np.array(rows), accepting)


def _epsilon_closures(
    epsilon: list[list[int]], nodes: set[int], relevant: set[int], budget: _Budget
) -> dict[int, frozenset[int]]:
    """For each of the nodes, the relevant nodes that are reached from it without taking a byte."""
    closures = {}
    for node in nodes:
        seen, stack = {node}, [node]
        while stack:
            for target in epsilon[stack.pop()]:
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        budget.spend(len(seen))
        closures[node] = frozenset(seen & relevant)
    return closures


def check_states(states: int) -> None:
    """Refuse an automaton of so many states."""
    if states > MAX_STATES:
        raise WonderlandError(
            f"The expression needs more than {MAX_STATES:,} states: make its repetitions smaller or nest it less."
        )


def _intersect(left: Automaton, right: Automaton, budget: _Budget) -> Automaton:
    """The product automaton: it accepts what both accept."""
    pairs, classes = np.unique(np.stack([left.byte_classes, right.byte_classes]), axis=1, return_inverse=True)
    states, order, rows = {(0, 0): 0}, [(0, 0)], []
    for a, b in order:
        row = []
        budget.spend(len(pairs[0]))
        for target in zip(left.table[a, pairs[0]].tolist(), right.table[b, pairs[1]].tolist(), strict=True):
            if min(target) < 0:
                row.append(-1)
                continue
            if target not in states:
                states[target] = len(order)
                order.append(target)
            row.append(states[target])
        rows.append(row)
        check_states(len(order))
    accepting = np.array([left.accepting[a] and right.accepting[b] for a, b in order])
    return _trim(classes.reshape(256), np.array(rows), accepting)


def _trim(byte_classes: np.ndarray, table: np.ndarray, accepting: np.ndarray) -> Automaton:
    """Remove states from which no accepting state can be reached, and merge byte classes with equal columns."""
    alive = accepting.copy()
    predecessors: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table.tolist()):
        for target in set(row):
            if target >= 0:
                predecessors[target].append(state)
    stack = np.flatnonzero(alive).tolist()
    while stack:
        for state in predecessors[stack.pop()]:
            if not alive[state]:
                alive[state] = True
                stack.append(state)
    if not alive[0]:
        raise Empty("The expression matches no text at all.")
    renumbered = np.append(np.where(alive, np.cumsum(alive) - 1, -1), -1)
    table = renumbered[table[alive]]
    columns, merged = np.unique(table, axis=1, return_inverse=True)
    dead_row = np.full((1, columns.shape[1]), -1)
    return Automaton(
        merged.reshape(-1)[byte_classes].astype(np.uint8),
        np.concatenate([columns, dead_row]).astype(np.int32),
        accepting[alive],
    )
