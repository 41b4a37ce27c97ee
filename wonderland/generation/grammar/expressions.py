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


def literal(text: str) -> Expression:
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
