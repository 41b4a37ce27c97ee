"""JSON values as expressions over their text: strings with escapes, constants, arrays and objects."""

import json
from typing import Any

from wonderland.core import WonderlandError
from wonderland.generation.grammar.characters import ANY, Ranges, difference, intersection
from wonderland.generation.grammar.expressions import (
    CharSet,
    Concat,
    Expression,
    Intersection,
    Repeat,
    SeparatedList,
    Union,
    literal,
    optional,
)

COMMA, COLON = (Concat((literal(sign), optional(literal(" ")))) for sign in ",:")
_UNESCAPED = difference(ANY, ((0, 31), (34, 34), (92, 92)))
_SHORT_ESCAPES = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def constant_text(value: Any) -> str:
    """The text of exactly this value."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
        text.encode()
    except (TypeError, ValueError):
        raise WonderlandError(f"JSON cannot represent the value {repr(value)[:60]}.") from None
    return text


def string(content: Expression) -> Expression:
    """A string whose characters, before escaping, match an expression."""
    return Concat((literal('"'), _escaped(content), literal('"')))


def array(item: Expression, least: int, most: int | None) -> Expression:
    """An array of `least` to `most` items; None for no upper bound."""
    if most == 0:
        return literal("[]")
    if least <= 1 and most is None:
        items = SeparatedList(item, COMMA)
    else:
        more = None if most is None else most - 1
        items = Concat((item, Repeat(Concat((COMMA, item)), max(least, 1) - 1, more)))
    return Concat((literal("["), items if least else optional(items), literal("]")))


def any_object(value: Expression) -> Expression:
    """An object with any number of members, of any names, whose values match an expression."""
    name = string(Repeat(CharSet(ANY), 0, None))
    return Concat((literal("{"), optional(SeparatedList(Concat((name, COLON, value)), COMMA)), literal("}")))


def _escaped(part: Expression) -> Expression:
    """The escaped form of texts, between the quotes."""
    if isinstance(part, CharSet):
        return _escaped_characters(part.ranges)
    if isinstance(part, Repeat):
        return Repeat(_escaped(part.part), part.least, part.most)
    if isinstance(part, Intersection):
        return Intersection(_escaped(part.left), _escaped(part.right))
    assert isinstance(part, Concat | Union)
    return type(part)(tuple(map(_escaped, part.parts)))


def _escaped_characters(ranges: Ranges) -> Expression:
    unescaped = intersection(ranges, _UNESCAPED)
    special = [
        code
        for low, high in intersection(ranges, ((0, 92),))
        for code in range(low, high + 1)
        if code < 32 or code in (34, 92)
    ]
    forms: list[Expression] = [CharSet(unescaped)] if unescaped else []
    forms += [literal(_SHORT_ESCAPES.get(code, f"\\u{code:04x}")) for code in special]
    return forms[0] if len(forms) == 1 else Union(tuple(forms))
