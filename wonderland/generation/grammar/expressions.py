"""Syntax trees of regular expressions: character sets, concatenation, union, repetition, intersection."""

from dataclasses import dataclass

from wonderland.generation.grammar.characters import ANY, Ranges, difference


@dataclass(frozen=True)
class CharSet:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Concat:
    """Parts one after another; without parts, the empty text."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Union:
    """One of several parts; without parts, no text at all."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Repeat:
    """A part from `least` to `most` times; None for no upper bound."""

    part: "Expression"
    least: int
    most: int | None


@dataclass(frozen=True)
class SeparatedList:
    """A part once or more, with a separator between."""

    part: "Expression"
    separator: "Expression"


@dataclass(frozen=True)
class OptionalParts:
    """Parts in a fixed order, each with whether it is required, with a separator between those that are present."""

    parts: "tuple[tuple[Expression, bool], ...]"
    separator: "Expression"


@dataclass(frozen=True)
class Intersection:
    """The texts that two expressions both match."""

    left: "Expression"
    right: "Expression"


Expression = CharSet | Concat | Union | Repeat | SeparatedList | OptionalParts | Intersection
NO_TEXT = Union(())


def literal(text: str) -> Concat:
    """Exactly this text.

    >>> literal("a")
    Concat(parts=(CharSet(ranges=((97, 97),)),))
    """
    return Concat(tuple(CharSet(((ord(character), ord(character)),)) for character in text))


def allow_leading_space(part: Expression) -> Expression:
    """Texts that match `part` after one leading space, if they have one, is removed."""
    no_space_first = Concat((CharSet(difference(ANY, ((32, 32),))), Repeat(CharSet(ANY), 0, None)))
    return Union((Concat((literal(" "), part)), Intersection(part, optional(no_space_first))))


def optional(part: Expression) -> Expression:
    """A part, or the empty text."""
    return Repeat(part, 0, 1)


def inner_parts(part: Expression) -> "tuple[Expression, ...]":
    """The expressions that an expression is made of."""
    if isinstance(part, CharSet):
        return ()
    if isinstance(part, Concat | Union):
        return part.parts
    if isinstance(part, Repeat):
        return (part.part,)
    if isinstance(part, SeparatedList):
        return (part.part, part.separator)
    if isinstance(part, OptionalParts):
        return (*(item for item, _ in part.parts), part.separator)
    return (part.left, part.right)


def _parts_first(root: Expression) -> list[Expression]:
    """Every expression inside one, once, after those that it is made of; without recursion, since trees may be deep."""
    order: list[Expression] = []
    seen: set[int] = set()
    stack = [(root, False)]
    while stack:
        part, finished = stack.pop()
        if finished:
            order.append(part)
        elif id(part) not in seen:
            seen.add(id(part))
            stack.append((part, True))
            stack += [(inner, False) for inner in inner_parts(part)]
    return order


def node_count(root: Expression) -> tuple[int, int]:
    """(at least how many nodes the automaton of an expression has, how many parts are visited to build it).

    A repetition counts its part as often as it may occur, so that the size is known before anything is built.

    >>> node_count(Repeat(Repeat(literal("ab"), 1000, 1000), 1000, 1000))[0]
    2000000
    """
    counts: dict[int, tuple[int, int]] = {}
    for part in _parts_first(root):
        if isinstance(part, CharSet):
            counts[id(part)] = 1, 1
            continue
        inner = [counts[id(own)] for own in inner_parts(part)]
        times = [1] * len(inner)
        own_nodes = {Concat: 0, Union: 1 + len(inner), SeparatedList: 2, Intersection: 1}.get(type(part), 0)
        if isinstance(part, Repeat):
            times = [max(part.least if part.most is None else part.most, 1 if part.most is None else 0)]
        elif isinstance(part, OptionalParts):
            own_nodes, times[-1] = 2 * len(part.parts), max(len(part.parts) - 1, 0)
        elif isinstance(part, Intersection):
            times = [0, 0]  # its sides are built on their own
        nodes, visits = (sum(n * count[k] for n, count in zip(times, inner, strict=True)) for k in (0, 1))
        counts[id(part)] = own_nodes + nodes, 1 + visits
    return counts[id(root)]


def simplified(root: Expression) -> Expression:
    r"""The same texts with repetitions of repetitions as one: `(a?){30}` is `a{0,30}`, and `(a{1,3})*` is `a*`.

    :math:`(p^{a..b})^{m..n} = p^{am..bn}` for a = 0 or 1 with b at least 1, since the counts then have no gaps.

    >>> simplified(Repeat(Repeat(literal("a"), 0, 1), 30, 30)) == Repeat(literal("a"), 0, 30)
    True
    """
    new: dict[int, Expression] = {}
    for part in _parts_first(root):
        if isinstance(part, CharSet):
            new[id(part)] = part
            continue
        own = [new[id(inner)] for inner in inner_parts(part)]
        if isinstance(part, Repeat):
            new[id(part)] = _repeated(own[0], part.least, part.most)
        elif all(a is b for a, b in zip(own, inner_parts(part), strict=True)):
            new[id(part)] = part
        elif isinstance(part, Concat | Union):
            new[id(part)] = type(part)(tuple(own))
        elif isinstance(part, SeparatedList):
            new[id(part)] = SeparatedList(own[0], own[1])
        elif isinstance(part, OptionalParts):
            required = [flag for _, flag in part.parts]
            new[id(part)] = OptionalParts(tuple(zip(own[:-1], required, strict=True)), own[-1])
        else:
            new[id(part)] = Intersection(own[0], own[1])
    return new[id(root)]


def _repeated(part: Expression, least: int, most: int | None) -> Expression:
    single = part
    while isinstance(single, Concat) and len(single.parts) == 1:
        single = single.parts[0]
    if isinstance(single, Concat) and not single.parts:
        return single  # the empty text, however often
    if (least, most) == (1, 1):
        return part
    if isinstance(single, Repeat) and single.least <= 1 and single.most != 0 and most != 0:
        unbounded = most is None or single.most is None
        together = None if unbounded else (most or 0) * (single.most or 0)
        return Repeat(single.part, single.least * least, together)
    return Repeat(part, least, most)
