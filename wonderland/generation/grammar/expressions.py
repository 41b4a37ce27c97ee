"""Regular sets of texts, as trees: characters, one thing after another, choices, repetitions, and what two have in common."""

from dataclasses import dataclass

from wonderland.generation.grammar.characters import ANY, Ranges, minus


@dataclass(frozen=True)
class Chars:
    """One character of a set."""

    ranges: Ranges


@dataclass(frozen=True)
class Then:
    """One after another; with no parts, the empty text."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Either:
    """One of several; with no parts, no text at all."""

    parts: "tuple[Expression, ...]"


@dataclass(frozen=True)
class Times:
    """A part from `least` to `most` times; None for no end."""

    part: "Expression"
    least: int
    most: int | None


@dataclass(frozen=True)
class Listed:
    """A part once or more, with a separator between."""

    part: "Expression"
    separator: "Expression"


@dataclass(frozen=True)
class Some:
    """Parts in their order, each needed or perhaps left out, with a separator between those that are there."""

    parts: "tuple[tuple[Expression, bool], ...]"
    separator: "Expression"


@dataclass(frozen=True)
class Both:
    """What two expressions have in common."""

    one: "Expression"
    other: "Expression"


Expression = Chars | Then | Either | Times | Listed | Some | Both
EMPTY = Then(())
NOTHING = Either(())


def literal(text: str) -> Expression:
    """A text as it stands.

    >>> literal("a")
    Then(parts=(Chars(ranges=((97, 97),)),))
    """
    return Then(tuple(Chars(((ord(one), ord(one)),)) for one in text))


def behind_a_space(part: Expression) -> Expression:
    """Texts that are in `part` once the space they may begin with is taken away."""
    other = Then((Chars(minus(ANY, ((32, 32),))), Times(Chars(ANY), 0, None)))
    return Either((Then((literal(" "), part)), Both(part, Times(other, 0, 1))))


def maybe(part: Expression) -> Expression:
    """A part or nothing."""
    return Times(part, 0, 1)
