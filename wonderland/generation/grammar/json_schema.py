"""JSON schemas as regular sets of texts: what a model may write so that the text is valid."""

import json
import math
from collections.abc import Mapping
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.generation.constraint import Constraint
from wonderland.generation.grammar.automaton import build
from wonderland.generation.grammar.characters import ANY, Ranges, common, minus
from wonderland.generation.grammar.expressions import (
    NOTHING,
    Both,
    Chars,
    Either,
    Expression,
    Listed,
    Some,
    Then,
    Times,
    behind_a_space,
    literal,
    maybe,
)
from wonderland.generation.grammar.matching import Matching
from wonderland.generation.grammar.numbers import real, whole
from wonderland.generation.grammar.regex import MOST_TIMES, parse

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
# Keywords that say nothing about which texts are valid.
REMARKS = frozenset(
    ("$schema", "$id", "$comment", "$defs", "definitions", "title", "description", "default", "examples",
     "deprecated", "readOnly", "writeOnly")
)  # fmt: skip
KEYWORDS: dict[str, frozenset[str]] = {
    "object": frozenset(("properties", "required", "additionalProperties")),
    "array": frozenset(("items", "minItems", "maxItems")),
    "string": frozenset(("minLength", "maxLength", "pattern")),
    "number": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
    "integer": frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")),
    "boolean": frozenset(),
    "null": frozenset(),
}
_FORMS = ("$ref", "anyOf", "enum", "const")
_KNOWN = ("type", *_FORMS, *sorted({word for words in KEYWORDS.values() for word in words}))
_DEEPEST = 40


def json_schema(schema: Any, pieces: Any, *, depth: int = 3, strip: bool = False) -> Constraint:
    """Only texts that are valid JSON for a schema; what a model writes is parsed and validated without a failure.

    Understood: `type` (one or several), `properties`, `required`, `additionalProperties`, `items`, `minItems`, `maxItems`,
    `minLength`, `maxLength`, `pattern`, `minimum`, `maximum` (and exclusive), `enum`, `const`, `anyOf`, `$ref` into the schema
    itself. Anything else is refused in a sentence, because a text could otherwise be invalid. Whole numbers have at most 15
    digits, others nine before the point.

    The texts are some of the valid ones: properties come in the order of the schema, those without a name in it only where
    `additionalProperties` is all there is; there is no white space but one space after a comma or a colon; strings escape only
    what must be. `depth` bounds how often a reference that leads back to itself, or a value of any kind, may lie inside another.
    `strip` is that of `matching`.

    >>> from wonderland.models import Decoder
    >>> from wonderland.generation import generate
    >>> pieces = [bytes([code]) for code in range(128)]
    >>> schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["age"]}
    >>> text = generate(Decoder(vocab=128, dim=8, depth=1), [[1]], 12, constraint=json_schema(schema, pieces)).texts[0]
    >>> 0 <= json.loads(text)["age"] <= 9
    True
    """
    if type(depth) is not int or not 1 <= depth <= 8:
        raise WonderlandError(
            f"depth, how often values may lie inside each other, is a whole number from 1 to 8, not {depth!r}."
        )
    found = expression(schema, depth)
    return Matching(build(behind_a_space(found) if strip else found), pieces)


def expression(schema: Any, depth: int = 3) -> Expression:
    """The texts that are valid for a schema, as one expression."""
    reader = _Reader(schema)
    found = reader.value(schema, depth, "the schema")
    if found == NOTHING and reader.cut:
        raise WonderlandError(
            f"No value of the schema ends within depth={depth}, how often values may lie inside each other: "
            "let one end without another, or give a larger depth, at most 8."
        )
    if found == NOTHING:
        raise WonderlandError("The schema allows no value at all.")
    return found


class _Reader:
    def __init__(self, root: Any):
        self.root, self.level, self.cut = root, 0, False
        self._known: dict[tuple[str, int], Expression] = {}
        self._leads: dict[str, bool] = {}

    def value(self, schema: Any, depth: int, where: str) -> Expression:
        if self.level >= _DEEPEST:
            raise WonderlandError(f"The schema is nested more than {_DEEPEST} levels deep: make it flatter.")
        self.level += 1
        found = self._value(schema, depth, where)
        self.level -= 1
        return found

    def _value(self, schema: Any, depth: int, where: str) -> Expression:
        if schema is True or schema == {}:
            return self.anything(depth)
        if schema is False:
            return NOTHING
        if not isinstance(schema, Mapping):
            raise WonderlandError(f"{_big(where)} is a {type(schema).__name__} where an object, true or false belongs.")
        for word in schema:
            if word not in _KNOWN and word not in REMARKS:
                raise WonderlandError(
                    f"{_big(where)} has the keyword {str(word)[:40]!r}, which is not understood here.{nearest(str(word)[:40], _KNOWN)}"
                )
        if "$id" in schema and schema is not self.root:
            raise WonderlandError(
                f"{_big(where)} has an $id of its own, from which references would count: leave it out."
            )
        forms = [word for word in _FORMS if word in schema]
        kinds = self.kinds(schema, where)
        used = {word for word in schema if word not in REMARKS and word not in _FORMS and word != "type"}
        if forms:
            if len(forms) > 1 or used or ("type" in schema and forms[0] not in ("enum", "const")):
                others = ", ".join(sorted({*forms[1:], *used, *({"type"} & set(schema))}))
                raise WonderlandError(f"{_big(where)} has {forms[0]} together with {others}: give one of them.")
            return getattr(self, f"of_{forms[0].lstrip('$').lower()}")(schema[forms[0]], depth, where, kinds)
        if "type" not in schema:
            # Words for one kind of value leave values of every other kind alone; whoever writes them means that kind.
            meant = [kind for kind in TYPES if used & KEYWORDS[kind]]
            if not meant:
                return self.anything(depth)
            raise WonderlandError(f"{_big(where)} has {min(used)} and no type: say which, perhaps {meant[0]!r}.")
        for word in sorted(used):
            if not any(word in KEYWORDS[kind] for kind in kinds):
                raise WonderlandError(
                    f"{_big(where)} has {word}, which says nothing about a value of type {' or '.join(kinds)}."
                )
        return _either([getattr(self, f"an_{kind}")(schema, depth, where) for kind in kinds])

    def kinds(self, schema: Mapping, where: str) -> list[str]:
        given = schema.get("type", list(TYPES))
        kinds = [given] if isinstance(given, str) else given
        if not isinstance(kinds, list) or not kinds or not all(kind in TYPES for kind in kinds):
            wrong = next((kind for kind in kinds if kind not in TYPES), kinds) if isinstance(kinds, list) else kinds
            raise WonderlandError(
                f"{_big(where)} has the type {str(wrong)[:40]!r}: types are {', '.join(TYPES)}.{nearest(str(wrong)[:40], TYPES)}"
            )
        return kinds

    def anything(self, depth: int) -> Expression:
        """A value of any kind; arrays and objects in it hold others, until the depth is used up."""
        flat: list[Expression] = [
            self.an_string({}, 0, ""),
            real(None, None, False, False),
            self.an_boolean(),
            self.an_null(),
        ]
        if depth > 1:
            inner = self.anything(depth - 1)
            flat += [_array(inner, 0, None), _map(inner)]
        return Either(tuple(flat))

    def of_ref(self, name: Any, depth: int, where: str, kinds: list[str]) -> Expression:
        target = self.target(name, where)
        again = self.returns(name, where)
        if again and depth <= 0:
            self.cut = True
            return NOTHING
        key = (name, depth)
        if key not in self._known:
            self._known[key] = self.value(target, depth - again, f"the schema at {name[:60]}")
        return self._known[key]

    def returns(self, name: str, where: str) -> bool:
        """Whether a reference leads, over others or by itself, back to where it leads."""
        if name not in self._leads:
            seen: set[str] = set()
            ahead = [name]
            while ahead:
                for other in _references(self.target(ahead.pop(), where)):
                    if other not in seen:
                        seen.add(other)
                        ahead.append(other)
            self._leads[name] = name in seen
        return self._leads[name]

    def target(self, name: Any, where: str) -> Any:
        """What a reference leads to."""
        target = self.root
        steps = name.split("/") if isinstance(name, str) else [""]
        if steps[0] != "#":
            raise WonderlandError(
                f"{_big(where)} refers to {str(name)[:60]!r}: only places in the schema itself (#/...) are followed."
            )
        for step in steps[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or step not in target:
                raise WonderlandError(f"{_big(where)} refers to {name[:60]!r}, which is not in the schema.")
            target = target[step]
        return target

    def of_anyof(self, choices: Any, depth: int, where: str, kinds: list[str]) -> Expression:
        if not isinstance(choices, list) or not choices:
            raise WonderlandError(f"{_big(where)} has an anyOf that is not a list of schemas.")
        return _either([self.value(one, depth, f"choice {index} of {where}") for index, one in enumerate(choices)])

    def of_enum(self, values: Any, depth: int, where: str, kinds: list[str]) -> Expression:
        if not isinstance(values, list) or not values:
            raise WonderlandError(f"{_big(where)} has an enum that is not a list of values.")
        return _either([_constant(value, where) for value in values if any(_is(value, kind) for kind in kinds)])

    def of_const(self, value: Any, depth: int, where: str, kinds: list[str]) -> Expression:
        return self.of_enum([value], depth, where, kinds)

    def an_object(self, schema: Mapping, depth: int, where: str) -> Expression:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping) or not all(isinstance(name, str) for name in properties):
            raise WonderlandError(f"The properties of {where} are not an object of schemas.")
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise WonderlandError(f"The required of {where} is not a list of names.")
        more = schema.get("additionalProperties", True)
        inner = (
            self.value(more, depth - 1, f"additionalProperties of {where}") if depth > 1 or more is False else NOTHING
        )
        if not properties and not required:
            return literal("{}") if inner == NOTHING else _map(inner)
        parts = {name: self.value(one, depth, f"property {name[:40]!r} of {where}") for name, one in properties.items()}
        for name in required:
            parts.setdefault(name, inner)
            if parts[name] == NOTHING:
                return NOTHING
        fields = tuple(
            (Then((_constant(name, where), _COLON, value)), name in required)
            for name, value in parts.items()
            if value != NOTHING
        )
        return Then((literal("{"), Some(fields, _COMMA), literal("}")))

    def an_array(self, schema: Mapping, depth: int, where: str) -> Expression:
        least, most = _bounds(schema, "minItems", "maxItems", where)
        # An array without a word about its items is nested as any other value is.
        item = self.value(schema["items"], depth, f"items of {where}") if "items" in schema else None
        if item is None:
            item = self.anything(depth - 1) if depth > 1 else NOTHING
        if item == NOTHING:
            return literal("[]") if least == 0 else NOTHING
        return _array(item, least, most)

    def an_string(self, schema: Mapping, depth: int, where: str) -> Expression:
        least, most = _bounds(schema, "minLength", "maxLength", where)
        inner: Expression = Times(Chars(ANY), least, most)
        if "pattern" in schema:
            found = parse(schema["pattern"], search=True)
            inner = found if (least, most) == (0, None) else Both(found, inner)
        return Then((literal('"'), _escaped(inner), literal('"')))

    def an_integer(self, schema: Mapping, depth: int, where: str) -> Expression:
        low, high, open_low, open_high = _limits(schema, where)
        low = None if low is None else math.floor(low) + 1 if open_low else math.ceil(low)
        high = None if high is None else math.ceil(high) - 1 if open_high else math.floor(high)
        for bound in (low, None if high is None else -high):
            if bound is not None and bound >= 10**15:
                raise WonderlandError(
                    f"{_big(where)} asks for whole numbers of more than 15 digits, which are not written."
                )
        return whole(low, high)

    def an_number(self, schema: Mapping, depth: int, where: str) -> Expression:
        low, high, open_low, open_high = _limits(schema, where)
        beyond = (open_low and low == 10**9) or (open_high and high == -(10**9))
        for bound in (low, high):
            if bound is not None and (bound != int(bound) or abs(bound) > 10**9 or beyond):
                raise WonderlandError(
                    f"{_big(where)} bounds a number by {bound}: bounds are whole numbers, at most 1,000,000,000 from 0."
                )
        low, high = (None if bound is None else int(bound) for bound in (low, high))
        if low is not None and high is not None and (low > high or (low == high and (open_low or open_high))):
            return NOTHING
        return real(low, high, open_low, open_high)

    def an_boolean(self, *_: Any) -> Expression:
        return Either((literal("true"), literal("false")))

    def an_null(self, *_: Any) -> Expression:
        return literal("null")


_COMMA, _COLON = (Then((literal(sign), maybe(literal(" ")))) for sign in ",:")
_PLAIN = minus(ANY, ((0, 31), (34, 34), (92, 92)))
_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _references(schema: Any) -> list[str]:
    """All references in a schema, however deep they lie."""
    found, ahead = [], [schema]
    while ahead:
        here = ahead.pop()
        if isinstance(here, Mapping):
            if isinstance(here.get("$ref"), str):
                found.append(here["$ref"])
            ahead += here.values()
        elif isinstance(here, list):
            ahead += here
    return found


def _escaped(part: Expression) -> Expression:
    """Texts as they stand between the quotes of a JSON string."""
    if isinstance(part, Chars):
        return _escaped_characters(part.ranges)
    if isinstance(part, Times):
        return Times(_escaped(part.part), part.least, part.most)
    if isinstance(part, Both):
        return Both(_escaped(part.one), _escaped(part.other))
    assert isinstance(part, Then | Either)
    return type(part)(tuple(map(_escaped, part.parts)))


def _escaped_characters(ranges: Ranges) -> Expression:
    plain = common(ranges, _PLAIN)
    special = [
        code
        for low, high in common(ranges, ((0, 92),))
        for code in range(low, high + 1)
        if code < 32 or code in (34, 92)
    ]
    found: list[Expression] = [Chars(plain)] if plain else []
    found += [literal(_SHORT.get(code, f"\\u{code:04x}")) for code in special]
    return found[0] if len(found) == 1 else Either(tuple(found))


def _constant(value: Any, where: str) -> Expression:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
        text.encode()
    except (TypeError, ValueError):
        raise WonderlandError(f"{_big(where)} names a value that JSON cannot write.") from None
    return literal(text)


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (kind == "number" or isinstance(value, int) or value.is_integer())
    kinds = {"object": Mapping, "array": list, "string": str, "boolean": bool, "null": type(None)}
    return isinstance(value, kinds[kind])


def _either(parts: list[Expression]) -> Expression:
    kept = [part for part in parts if part != NOTHING]
    return kept[0] if len(kept) == 1 else Either(tuple(kept))


def _array(item: Expression, least: int, most: int | None) -> Expression:
    if most == 0:
        return literal("[]")
    if least <= 1 and most is None:
        inner = Listed(item, _COMMA)
    else:
        inner = Then((item, Times(Then((_COMMA, item)), max(least, 1) - 1, None if most is None else most - 1)))
    return Then((literal("["), inner if least else maybe(inner), literal("]")))


def _map(value: Expression) -> Expression:
    key = Then((literal('"'), Times(_escaped_characters(ANY), 0, None), literal('"')))
    return Then((literal("{"), maybe(Listed(Then((key, _COLON, value)), _COMMA)), literal("}")))


def _bounds(schema: Mapping, low: str, high: str, where: str) -> tuple[int, int | None]:
    for word in (low, high):
        value = schema.get(word, 0)
        if type(value) is not int or not 0 <= value <= MOST_TIMES:
            raise WonderlandError(f"{_big(where)} has {word}={value!r}: it is a whole number from 0 to {MOST_TIMES}.")
    least, most = schema.get(low, 0), schema.get(high)
    if most is not None and most < least:
        raise WonderlandError(f"{_big(where)} has {low}={least} and {high}={most}: nothing lies between.")
    return least, most


def _limits(schema: Mapping, where: str) -> tuple[float | int | None, float | int | None, bool, bool]:
    """The bounds of a number, and whether each is excluded: the tighter where two are given."""
    found: list[tuple[float | int | None, bool]] = []
    for word, sign in (("Minimum", 1), ("Maximum", -1)):
        bound: float | int | None = None
        open_ = False
        for name, excluded in ((word.lower(), False), (f"exclusive{word}", True)):
            value = schema.get(name)
            if value is None and name not in schema:
                continue
            # What is not a number is not at most anything either.
            if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= 10**15:
                shown = repr(value) if not isinstance(value, int) or value.bit_length() < 128 else "a huge number"
                raise WonderlandError(f"{_big(where)} has {name}={shown}: it is a number, at most 10 to the 15 from 0.")
            if bound is None or sign * value > sign * bound or (value == bound and excluded):
                bound, open_ = value, excluded
        found.append((bound, open_))
    return found[0][0], found[1][0], found[0][1], found[1][1]


def _big(where: str) -> str:
    return where[:1].upper() + where[1:]
