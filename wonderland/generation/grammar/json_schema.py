"""JSON schemas as constraints: the texts that are valid JSON for a schema, as one regular expression."""

import math
from collections.abc import Mapping
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.generation.constraint import Constraint
from wonderland.generation.grammar.automaton import MAX_NODES, build, check_states, too_many_nodes
from wonderland.generation.grammar.characters import ANY
from wonderland.generation.grammar.expressions import (
    NO_TEXT,
    CharSet,
    Concat,
    Expression,
    Intersection,
    OptionalParts,
    Repeat,
    Union,
    allow_leading_space,
    literal,
    node_count,
)
from wonderland.generation.grammar.json_bounds import number_bounds, size_bounds
from wonderland.generation.grammar.json_references import References
from wonderland.generation.grammar.json_text import COLON, COMMA, any_object, array, constant_text, string
from wonderland.generation.grammar.matching import Matching
from wonderland.generation.grammar.numbers import LARGEST, decimals, integers
from wonderland.generation.grammar.regex import parse

TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
# Keywords that do not restrict which values are valid.
ANNOTATIONS = frozenset(
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
# Keywords that cannot be combined with others, apart from annotations.
_EXCLUSIVE = ("$ref", "anyOf", "enum", "const")
_SUPPORTED = ("type", *_EXCLUSIVE, *sorted({keyword for keywords in KEYWORDS.values() for keyword in keywords}))
_MAX_DEPTH, _MAX_PARTS = 40, 20_000
_JSON_CLASSES: dict[str, type] = {"object": Mapping, "array": list, "string": str, "boolean": bool, "null": type(None)}


def json_schema(schema: Any, pieces: Any, *, depth: int = 3, strip: bool = False) -> Constraint:
    """A constraint under which every generated text is JSON that is valid for a schema.

    Supported: `type` (one or several), `properties`, `required`, `additionalProperties`, `items`, `minItems`, `maxItems`,
    `minLength`, `maxLength`, `pattern`, `minimum`, `maximum` (and exclusive), `enum`, `const`, `anyOf`, `$ref` into the schema
    itself. Other keywords are refused, because ignoring them could make a text invalid. Integers have at most 15 digits,
    other bounded numbers nine before the point.

    Not every valid text is allowed: properties come in the order of the schema, and names that are not in it only if the
    schema names no properties at all; the only white space is one space after a comma or a colon; strings escape only what
    must be escaped. `depth` bounds the nesting of recursive references and of values without a schema. `strip` is that of
    `matching`.

    >>> import json
    >>> from wonderland.models import Decoder
    >>> from wonderland.generation import generate
    >>> pieces = [bytes([code]) for code in range(128)]
    >>> schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0, "maximum": 9}}, "required": ["age"]}
    >>> text = generate(Decoder(vocab=128, dim=8, depth=1), [[1]], 12, constraint=json_schema(schema, pieces)).texts[0]
    >>> 0 <= json.loads(text)["age"] <= 9
    True
    """
    if type(depth) is not int or not 1 <= depth <= 8:
        raise WonderlandError(f"depth, the deepest nesting of values, is a whole number from 1 to 8, not {depth!r}.")
    texts = expression(schema, depth)
    return Matching(build(allow_leading_space(texts) if strip else texts), pieces)


def expression(schema: Any, depth: int = 3) -> Expression:
    """The texts that are valid for a schema, as one expression."""
    translator = _Translator(schema)
    texts = translator.value(schema, depth, "the schema")
    if texts == NO_TEXT and translator.cut:
        raise WonderlandError(
            f"Every value of the schema is nested deeper than depth={depth}: allow a value that ends the recursion, or give "
            "a larger depth, at most 8."
        )
    if texts == NO_TEXT:
        raise WonderlandError("The schema allows no value at all.")
    return texts


class _Translator:
    """Translates schemas to expressions. `where` names the part of the schema in messages.

    `cut` is True if a recursive reference was left out because the depth was used up.
    """

    def __init__(self, root: Any):
        self.root, self.nesting, self.cut = root, 0, False
        self.parts = self.characters = self.nodes = 0
        self._sizes: dict[
            int, tuple[int, Expression]
        ] = {}  # by id; the expression is kept, so that its id stays its own
        self._any: dict[int, Expression] = {}  # what occurs often is translated once, and visited once when it is built
        self._containers: dict[tuple[str, int], Expression] = {}
        self._leaves: dict[tuple[Any, ...], Expression] = {}
        self._references = References(root)
        self._translated: dict[tuple[str, int], Expression] = {}

    def value(self, schema: Any, depth: int, where: str) -> Expression:
        """The texts of values that are valid for a schema."""
        if self.nesting >= _MAX_DEPTH:
            raise WonderlandError(f"The schema is nested more than {_MAX_DEPTH} levels deep: make it flatter.")
        self.nesting += 1
        self._check_parts(1)
        self.parts += 1
        texts = self._value(schema, depth, where)
        self.nesting -= 1
        return texts

    def _value(self, schema: Any, depth: int, where: str) -> Expression:
        if schema is True or schema == {}:
            return self.any_value(depth)
        if schema is False:
            return NO_TEXT
        self._check_keywords(schema, where)
        types = _types(schema, where)
        exclusive = [keyword for keyword in _EXCLUSIVE if keyword in schema]
        others = {key for key in schema if key not in ANNOTATIONS and key not in _EXCLUSIVE and key != "type"}
        if exclusive:
            keyword = exclusive[0]
            if len(exclusive) > 1 or others or ("type" in schema and keyword not in ("enum", "const")):
                rest = ", ".join(sorted({*exclusive[1:], *others, *({"type"} & set(schema))}))
                raise WonderlandError(f"{_capital(where)} has {keyword} together with {rest}: give one of them.")
            return self._exclusive(keyword, schema[keyword], depth, where, types)
        if "type" not in schema:
            # By the standard, keywords of one type do not restrict values of another: almost surely a type was forgotten.
            likely = [name for name in TYPES if others & KEYWORDS[name]]
            if not likely:
                return self.any_value(depth)
            raise WonderlandError(f"{_capital(where)} has {min(others)} but no type: add it, perhaps {likely[0]!r}.")
        for keyword in sorted(others):
            if not any(keyword in KEYWORDS[name] for name in types):
                raise WonderlandError(
                    f"{_capital(where)} has {keyword}, which has no meaning for the type {' or '.join(types)}."
                )
        texts = [
            self._typed(name, schema, depth, where) if others & KEYWORDS[name] else self._unrestricted(name, depth)
            for name in types
        ]
        for name, own in zip(types, texts, strict=True):
            if name not in ("object", "array"):
                self._count_nodes(own)
        return _union(texts)

    def _check_keywords(self, schema: Any, where: str) -> None:
        if not isinstance(schema, Mapping):
            raise WonderlandError(
                f"{_capital(where)} is a {type(schema).__name__}: a schema is an object, true or false."
            )
        for keyword in schema:
            if keyword not in _SUPPORTED and keyword not in ANNOTATIONS:
                shown = str(keyword)[:40]
                raise WonderlandError(
                    f"{_capital(where)} has the keyword {shown!r}, which is not supported.{nearest(shown, _SUPPORTED)}"
                )
        if "$id" in schema and schema is not self.root:
            raise WonderlandError(
                f"{_capital(where)} has an $id of its own, which would change the meaning of references: remove it."
            )

    def _exclusive(self, keyword: str, given: Any, depth: int, where: str, types: list[str]) -> Expression:
        if keyword == "$ref":
            return self._reference(given, depth, where)
        if keyword == "anyOf":
            if not isinstance(given, list) or not given:
                raise WonderlandError(f"{_capital(where)} has an anyOf that is not a list of schemas.")
            self._check_parts(len(given))
            return _union(
                [self.value(choice, depth, f"choice {index} of {where}") for index, choice in enumerate(given)]
            )
        values = [given] if keyword == "const" else given
        if not isinstance(values, list) or not values:
            raise WonderlandError(f"{_capital(where)} has an enum that is not a list of values.")
        if len(values) > MAX_NODES:
            self._count_characters(len(values))
        return _union([self._constant(value) for value in values if any(_has_type(value, name) for name in types)])

    def _constant(self, value: Any) -> Expression:
        """Exactly this value; characters are counted, so that what is too long is refused before it is built."""
        text = constant_text(value)
        self._count_characters(len(text))
        check_states(len(text))  # each character of one text takes a state
        return literal(text)

    def _count_nodes(self, texts: Expression) -> None:
        """Refuse early what would need too many nodes, since building many small expressions takes long too."""
        if id(texts) not in self._sizes:
            self._sizes[id(texts)] = node_count(texts)[0], texts
        self.nodes += self._sizes[id(texts)][0]
        if self.nodes > MAX_NODES:
            raise too_many_nodes()

    def _count_characters(self, count: int) -> None:
        self.characters += count
        if self.characters > MAX_NODES:
            raise WonderlandError(
                f"The names, patterns and constants of the schema have more than {MAX_NODES:,} characters: give fewer."
            )

    def _check_parts(self, more: int) -> None:
        """Refuse a schema with too many parts, these included, before they are translated."""
        if self.parts + more > _MAX_PARTS:
            raise WonderlandError(f"The schema has more than {_MAX_PARTS:,} parts: make it smaller.")

    def _reference(self, name: Any, depth: int, where: str) -> Expression:
        target = self._references.target(name, _capital(where))
        recursive = self._references.recursive(name, _capital(where))
        if recursive and depth <= 0:
            self.cut = True
            return NO_TEXT
        key = (name, depth)
        if key not in self._translated:
            self._translated[key] = self.value(target, depth - recursive, f"the schema at {name[:60]}")
        return self._translated[key]

    def _typed(self, name: str, schema: Mapping, depth: int, where: str) -> Expression:
        if name == "object":
            return self._object(schema, depth, where)
        if name == "array":
            return self._array(schema, depth, where)
        if name in ("null", "boolean"):
            return literal("null") if name == "null" else Union((literal("true"), literal("false")))
        given = [(key, schema[key]) for key in sorted(KEYWORDS[name]) if key in schema]
        if isinstance(pattern := schema.get("pattern"), str) and name == "string":
            self._count_characters(len(pattern))
        key = (name, *((key, type(value), value) for key, value in given))
        if not all(isinstance(value, str | int | float) for _, value in given) or key not in self._leaves:
            texts = {"string": _string, "integer": _integer, "number": _number}[name](schema, where)
            self._leaves[key] = texts  # what was refused is not kept, so all values are hashable
        return self._leaves[key]

    def _unrestricted(self, name: str, depth: int) -> Expression:
        """All values of a type."""
        if (name, depth) not in self._containers:
            self._containers[name, depth] = self._typed(name, {}, depth, "")
        return self._containers[name, depth]

    def any_value(self, depth: int) -> Expression:
        """A value of any type; arrays and objects in it hold others, until the depth is used up."""
        if depth not in self._any:
            self._any[depth] = self._any_value(depth)
        return self._any[depth]

    def _any_value(self, depth: int) -> Expression:
        scalars = [self._typed(name, {}, 0, "") for name in ("string", "number", "boolean", "null")]
        if depth <= 1:
            return Union(tuple(scalars))
        inner = self.any_value(depth - 1)
        return Union((*scalars, array(inner, 0, None), any_object(inner)))

    def _object(self, schema: Mapping, depth: int, where: str) -> Expression:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, Mapping) or not all(isinstance(name, str) for name in properties):
            raise WonderlandError(f"The properties of {where} are not an object of schemas.")
        if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
            raise WonderlandError(f"The required of {where} is not a list of names.")
        self._check_parts(max(len(properties), len(required)))
        additional = schema.get("additionalProperties", True)
        other = NO_TEXT
        if depth > 1 or additional is False:
            other = self.value(additional, depth - 1, f"additionalProperties of {where}")
        if not properties and not required:
            return literal("{}") if other == NO_TEXT else any_object(other)
        values = {
            name: self.value(inner, depth, f"property {name[:40]!r} of {where}") for name, inner in properties.items()
        }
        for name in required:
            values.setdefault(name, other)
            if values[name] == NO_TEXT:
                return NO_TEXT
        needed = set(required)
        members = tuple(
            (Concat((self._constant(name), COLON, value)), name in needed)
            for name, value in values.items()
            if value != NO_TEXT
        )
        return Concat((literal("{"), OptionalParts(members, COMMA), literal("}")))

    def _array(self, schema: Mapping, depth: int, where: str) -> Expression:
        least, most = size_bounds(schema, "minItems", "maxItems", _capital(where))
        if "items" in schema:
            item = self.value(schema["items"], depth, f"items of {where}")
        else:
            item = self.any_value(depth - 1) if depth > 1 else NO_TEXT
        if item == NO_TEXT:
            return literal("[]") if least == 0 else NO_TEXT
        return array(item, least, most)


def _string(schema: Mapping, where: str) -> Expression:
    least, most = size_bounds(schema, "minLength", "maxLength", _capital(where))
    content: Expression = Repeat(CharSet(ANY), least, most)
    if "pattern" in schema:
        pattern = parse(schema["pattern"], search=True)
        content = pattern if (least, most) == (0, None) else Intersection(pattern, content)
    return string(content)


def _integer(schema: Mapping, where: str) -> Expression:
    low, high, open_low, open_high = number_bounds(schema, _capital(where))
    low = None if low is None else math.floor(low) + 1 if open_low else math.ceil(low)
    high = None if high is None else math.ceil(high) - 1 if open_high else math.floor(high)
    for bound in (low, None if high is None else -high):
        if bound is not None and bound >= 10**15:
            raise WonderlandError(
                f"{_capital(where)} asks for integers of more than 15 digits, which are not supported."
            )
    return integers(low, high)


def _number(schema: Mapping, where: str) -> Expression:
    low, high, open_low, open_high = number_bounds(schema, _capital(where))
    beyond = (open_low and low == LARGEST) or (open_high and high == -LARGEST)
    for bound in (low, high):
        if bound is not None and (bound != int(bound) or abs(bound) > LARGEST or beyond):
            raise WonderlandError(
                f"{_capital(where)} bounds a number by {bound}: bounds must be whole numbers of magnitude at most {LARGEST:,}."
            )
    low, high = (None if bound is None else int(bound) for bound in (low, high))
    if low is not None and high is not None and (low > high or (low == high and (open_low or open_high))):
        return NO_TEXT
    return decimals(low, high, open_low, open_high)


def _types(schema: Mapping, where: str) -> list[str]:
    """The types that a schema allows."""
    given = schema.get("type", list(TYPES))
    types = [given] if isinstance(given, str) else given
    if not isinstance(types, list) or not types or not all(name in TYPES for name in types):
        wrong = next((name for name in types if name not in TYPES), types) if isinstance(types, list) else types
        shown = str(wrong)[:40]
        raise WonderlandError(
            f"{_capital(where)} has the type {shown!r}: types are {', '.join(TYPES)}.{nearest(shown, TYPES)}"
        )
    return types


def _has_type(value: Any, name: str) -> bool:
    if name in ("number", "integer"):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return number and (name == "number" or isinstance(value, int) or value.is_integer())
    return isinstance(value, _JSON_CLASSES[name])


def _union(parts: list[Expression]) -> Expression:
    possible = [part for part in parts if part != NO_TEXT]
    return possible[0] if len(possible) == 1 else Union(tuple(possible))


def _capital(where: str) -> str:
    return where[:1].upper() + where[1:]
