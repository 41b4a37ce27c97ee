"""JSON schemas: whatever is written parses and validates, by the jsonschema package."""

import json
import time
from itertools import pairwise

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generation.grammar.test_matching import BYTES, Chance
from wonderland.core import WonderlandError
from wonderland.generation import generate, json_schema
from wonderland.generation.grammar.automaton import build
from wonderland.generation.grammar.json_schema import expression

PERSON = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A person",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "maxLength": 6},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
        "kind": {"enum": ["cat", "hatter", 3, None, {"a": [1, 2]}]},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-f]{1,3}$"}, "maxItems": 3},
        "more": {"type": ["boolean", "null"]},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
CHAIN = {
    "$defs": {
        "link": {
            "type": "object",
            "properties": {
                "value": {"type": "number"},
                "next": {"anyOf": [{"$ref": "#/$defs/link"}, {"type": "null"}]},
            },
            "required": ["value", "next"],
        }
    },
    "$ref": "#/$defs/link",
}


def check(schema, *, rows=4, count=30, seed=0):
    constraint = json_schema(schema, BYTES)
    count = max(count, int(constraint.distance[0]))
    written = generate(Chance(256, seed), [[0]] * rows, count, constraint=constraint)
    values = [json.loads(text) for text in written.texts]
    for value in values:
        jsonschema.validate(value, schema)
    return values


@pytest.mark.parametrize(
    "schema",
    [
        PERSON,
        CHAIN,
        {},
        True,
        {"description": "anything"},
        {"type": "object"},
        {"type": "array"},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "required": ["a", "b"], "properties": {"b": {"const": 'q"\\\n\x01é'}}},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 4},
        {"type": "array", "items": False},
        {"type": "string", "pattern": 'a"|\\\\$', "maxLength": 9},
        {"type": "string", "pattern": "^\\S+$", "minLength": 3},
        {"type": "number", "minimum": -2, "exclusiveMaximum": 3},
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "number", "maximum": -5},
        {"type": "number", "minimum": 7, "maximum": 7},
        {"type": "integer", "exclusiveMinimum": 2.5, "maximum": 1000},
        {"type": "integer", "minimum": -45, "exclusiveMaximum": -9},
        {"anyOf": [{"type": "null"}, {"type": "integer"}, False]},
        {"enum": ["a", 1.5, True], "type": ["string", "boolean"]},
    ],
)
def test_what_is_written_is_valid(schema):
    check(schema)


NAMES = st.text('ab"é\\', min_size=1, max_size=3)
INTEGERS = st.tuples(st.integers(-300, 300), st.integers(0, 400))
LEAVES = st.one_of(
    st.sampled_from(
        [{"type": "boolean"}, {"type": "null"}, {"type": "string"}, {"type": "number"}, {"type": "integer"}]
    ),
    st.tuples(st.sampled_from(["integer", "number"]), INTEGERS).map(
        lambda x: {"type": x[0], "minimum": x[1][0], "maximum": x[1][0] + x[1][1]}
    ),
    INTEGERS.map(lambda x: {"type": "number", "exclusiveMinimum": x[0], "exclusiveMaximum": x[0] + x[1] + 1}),
    st.tuples(st.integers(0, 3), st.integers(0, 4)).map(
        lambda x: {"type": "string", "minLength": x[0], "maxLength": sum(x)}
    ),
    st.tuples(st.sampled_from(["^a+", "b$", "[^a-z]", "^(x|yz)*$", "\\d"]), st.integers(3, 9)).map(
        lambda x: {"type": "string", "pattern": x[0], "maxLength": x[1]}
    ),
    st.lists(st.one_of(NAMES, st.integers(-9, 9), st.none(), st.booleans()), min_size=1, max_size=3).map(
        lambda x: {"enum": x}
    ),
)


def _grow(inner):
    return st.one_of(
        st.tuples(st.dictionaries(NAMES, inner, max_size=3), st.randoms(use_true_random=False)).map(
            lambda x: {
                "type": "object",
                "properties": x[0],
                "required": x[1].sample(sorted(x[0]), x[1].randint(0, len(x[0]))),
                "additionalProperties": False,
            }
        ),
        st.tuples(inner, st.integers(0, 2), st.integers(0, 2)).map(
            lambda x: {"type": "array", "items": x[0], "minItems": x[1], "maxItems": x[1] + x[2]}
        ),
        st.lists(inner, min_size=1, max_size=2).map(lambda x: {"anyOf": x}),
    )


@settings(deadline=None, max_examples=15)
@given(st.recursive(LEAVES, _grow, max_leaves=3), st.integers(0, 99))
def test_any_schema_of_the_kind(schema, seed):
    check(schema, rows=2, count=1, seed=seed)
    check(schema, rows=2, count=30, seed=seed)


@pytest.mark.slow
@settings(deadline=None, max_examples=600)
@given(st.recursive(LEAVES, _grow, max_leaves=8), st.integers(0, 9999))
def test_many_schemas(schema, seed):
    check(schema, rows=4, count=1, seed=seed)
    check(schema, rows=4, count=60, seed=seed)


@settings(deadline=None, max_examples=25)
@given(INTEGERS, st.integers(-1000, 1000), st.booleans(), st.booleans())
def test_bounds_of_numbers_are_exact(bounds, value, open_low, open_high):
    low, high = bounds[0], sum(bounds)
    words = {"exclusiveMinimum" if open_low else "minimum": low, "exclusiveMaximum" if open_high else "maximum": high}
    for kind, factor in (("integer", 1), ("number", 4)):
        schema = {"type": kind, **words}
        value = value if kind == "integer" else value / factor
        valid = jsonschema.Draft202012Validator(schema).is_valid(value)
        try:
            actual = build(expression(schema)).matches(json.dumps(value).encode())
        except WonderlandError:
            # Nothing lies between the bounds.
            actual = False
        assert actual == valid


def test_optional_properties_are_there_or_not_in_every_combination():
    schema = {"type": "object", "properties": {name: {"const": 1} for name in "abcd"}, "required": ["c"]}
    automaton = build(expression(schema))
    names = ["".join(name for name, bit in zip("abcd", range(4), strict=True) if code >> bit & 1) for code in range(16)]
    for chosen in names:
        assert automaton.matches(json.dumps(dict.fromkeys(chosen, 1)).encode()) == ("c" in chosen)
    assert not automaton.matches(b'{"c":1,"a":1}')


def test_many_optional_properties_stay_small():
    schema = {"type": "object", "properties": {f"name{index}": {"type": "boolean"} for index in range(40)}}
    assert len(build(expression(schema)).accepting) < 4000


def test_nesting_is_bounded():
    def depth(value):
        return 0 if value["next"] is None else 1 + depth(value["next"])

    assert {depth(value) for value in check(CHAIN, rows=40, count=400)} == {0, 1, 2}
    with pytest.raises(WonderlandError) as error:
        json_schema(
            {"$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}}, "$ref": "#/$defs/a"},
            BYTES,
        )
    assert str(error.value) == (
        "Every value of the schema is nested deeper than depth=3: allow a value that ends the recursion, or give a larger "
        "depth, at most 8."
    )


def test_references_that_are_not_recursive_are_not_limited_by_depth():
    names = "ABCDEF"
    definitions = {
        one: {"type": "object", "properties": {"x": {"$ref": f"#/$defs/{other}"}}, "required": ["x"]}
        for one, other in pairwise(names)
    }
    definitions["F"] = {"type": "integer", "minimum": 0, "maximum": 3}
    for value in check({"$ref": "#/$defs/A", "$defs": definitions}, rows=4, count=200):
        for _ in range(5):
            value = value["x"]
        assert value in range(4)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "strnig"}, "The schema has the type 'strnig': types are object, array, string, number, integer, boolean, null. "
         "Did you mean 'string'?"),
        ({"type": "string", "maxlength": 3}, "The schema has the keyword 'maxlength', which is not supported. "
         "Did you mean 'maxLength' or 'minLength'?"),
        ({"type": "array", "uniqueItems": True}, "The schema has the keyword 'uniqueItems', which is not supported. "
         "Did you mean 'minItems' or 'items'?"),
        ({"oneOf": [{}]}, "The schema has the keyword 'oneOf', which is not supported. Did you mean 'anyOf'?"),
        ({"type": "object", "properties": {"a": {"format": "date"}}},
         "Property 'a' of the schema has the keyword 'format', which is not supported."),
        ({"minLength": 2}, "The schema has minLength but no type: add it, perhaps 'string'."),
        ({"type": "string", "minimum": 2}, "The schema has minimum, which has no meaning for the type string."),
        ({"enum": [1], "minimum": 2}, "The schema has enum together with minimum: give one of them."),
        ({"anyOf": [{}], "type": "string"}, "The schema has anyOf together with type: give one of them."),
        ({"anyOf": []}, "The schema has an anyOf that is not a list of schemas."),
        ({"enum": []}, "The schema has an enum that is not a list of values."),
        ({"const": float("nan")}, "JSON cannot represent the value nan."),
        (False, "The schema allows no value at all."),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "The schema allows no value at all."),
        ({"type": "number", "minimum": 0.5}, "The schema bounds a number by 0.5: bounds must be whole numbers of magnitude at most 1,000,000,000."),
        ({"type": "integer", "minimum": "a"}, "The schema has minimum='a': it must be a number of magnitude at most 10 to the 15."),
        ({"type": "integer", "minimum": 10**400}, "The schema has minimum=a huge number: it must be a number of magnitude at most 10 to the 15."),
        ({"type": "integer", "minimum": float("nan")}, "The schema has minimum=nan: it must be a number of magnitude at most 10 to the 15."),
        ({"type": "integer", "minimum": 10**15}, "The schema asks for integers of more than 15 digits, which are not supported."),
        ({"type": "integer", "maximum": -(10**15)}, "The schema asks for integers of more than 15 digits, which are not supported."),
        ({"type": "number", "exclusiveMinimum": 10**9},
         "The schema bounds a number by 1000000000: bounds must be whole numbers of magnitude at most 1,000,000,000."),
        ({"type": "array", "items": {"$id": "http://y/"}},
         "Items of the schema has an $id of its own, which would change the meaning of references: remove it."),
        ({"type": "string", "minLength": -1}, "The schema has minLength=-1: it must be a whole number from 0 to 1000."),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "The schema has minLength=3 and maxLength=2: no value has both."),
        ({"$ref": "other.json"}, "The schema refers to 'other.json': only references within the schema (#/...) are supported."),
        ({"$ref": "#/$defs/x"}, "The schema refers to '#/$defs/x', which is not in the schema."),
        ([], "The schema is a list: a schema is an object, true or false."),
        ({"type": "object", "properties": []}, "The properties of the schema are not an object of schemas."),
        ({"type": "object", "required": "a"}, "The required of the schema is not a list of names."),
    ],
)  # fmt: skip
def test_the_rest_is_refused(schema, words):
    with pytest.raises(WonderlandError) as error:
        json_schema(schema, BYTES)
    assert str(error.value) == words


def test_a_schema_of_any_depth_is_refused_and_not_followed():
    schema = {}
    for _ in range(3000):
        schema = {"type": "array", "items": schema, "minItems": 1}
    with pytest.raises(WonderlandError) as error:
        json_schema(schema, BYTES)
    assert str(error.value) == "The schema is nested more than 40 levels deep: make it flatter."
    with pytest.raises(WonderlandError) as error:
        json_schema({}, BYTES, depth=0)
    assert str(error.value) == "depth, the deepest nesting of values, is a whole number from 1 to 8, not 0."


MANY = [f"name{number}" for number in range(200_000)]
CHARACTERS = "The names, patterns and constants of the schema have more than 100,000 characters: give fewer."
STATES = "The expression needs more than 10,000 states: make its repetitions smaller or nest it less."
NODES = "The expression needs more than 100,000 nodes: make its repetitions smaller or nest it less."
PARTS = "The schema has more than 20,000 parts: make it smaller."


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"enum": MANY}, CHARACTERS),
        ({"enum": [letter * 9_000 for letter in "abcdefghijkl"]}, CHARACTERS),
        ({"enum": ["a" * 60_000, "b" * 60_000]}, STATES),
        ({"type": "object", "properties": {"a" * 90_000: {"type": "null"}}}, STATES),
        ({"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(5000)}}, NODES),
        ({"type": "object", "properties": {f"p{i}": {"type": "object"} for i in range(3000)}}, NODES),
        ({"anyOf": [{"const": name} for name in MANY]}, PARTS),
        ({"type": "object", "properties": {name: {"type": "null"} for name in MANY}, "required": MANY}, PARTS),
        ({"type": "object", "required": MANY}, PARTS),
        ({"type": "object", "properties": {name * 10: {"type": "null"} for name in MANY[:19_000]}}, CHARACTERS),
        (
            {"type": "array", "minItems": 900, "items": {"type": "string", "pattern": "^[a-z]{1,9}$", "maxLength": 20}},
            STATES,
        ),
    ],
    ids=[
        "enum",
        "long names",
        "longer names",
        "a name",
        "strings",
        "objects",
        "anyOf",
        "properties",
        "required",
        "long properties",
        "patterns",
    ],
)
def test_a_schema_that_is_too_large_is_refused_within_a_second(schema, message):
    start = time.process_time()
    with pytest.raises(WonderlandError) as error:
        build(expression(schema))
    assert str(error.value) == message
    assert time.process_time() - start < 3  # less than a second on an idle machine
