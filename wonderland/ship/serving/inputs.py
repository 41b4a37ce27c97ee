"""What a request may hold, made from the schema of a run: checked by pydantic, described for OpenAPI, refused in sentences."""

import base64
import binascii
from typing import Annotated, Any, NotRequired

from pydantic import BeforeValidator, Field, StringConstraints, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from wonderland.core import WonderlandError, nearest
from wonderland.data.encoder import Field as InputField

MOST_ROWS = 1_000
MOST_CHARACTERS = 200_000
LEVEL = "Coverage of sets and intervals, between 0 and 1; that of the run where it is not given."
UPLOADED = frozenset({"image", "sound"})  # kinds of fields whose values are files


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("give a number or null, not true or false")
    return value


def _file(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError("give the content of the file as base64")
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError("this is not base64") from error


Text: Any = Annotated[str, StringConstraints(max_length=MOST_CHARACTERS)]
Number: Any = Annotated[float, BeforeValidator(_number), Field(allow_inf_nan=False)]
TYPES: tuple[tuple[str, Any], ...] = (
    ("number", Number | None),
    ("category", Text | int | float | bool | None),
    ("boolean", bool | Text | int | None),
    ("date", Text | None),
)


def type_of(field: InputField) -> Any:
    """The type of one field of a request, with a description for people."""
    if field.kind in UPLOADED:
        kind: Any = Annotated[bytes, BeforeValidator(_file, json_schema_input_type=str)]
    else:
        kind = dict(TYPES).get(field.kind, Text)
    return Annotated[kind, Field(description=describe(field))]


def describe(field: InputField) -> str:
    """A field in a sentence."""
    words = f"A {field.kind}" + (f" in {field.unit}" if field.unit else "")
    if field.levels:
        shown = ", ".join(repr(level) for level in field.levels[:20])
        words += f": {shown}" + (f" and {len(field.levels) - 20} more" if len(field.levels) > 20 else "")
    if field.kind in UPLOADED:
        words += ", the bytes of the file as base64"
    elif field.kind in dict(TYPES):
        words += "; null where it is not known"
    return words + "."


class Inputs:
    """Reads the bodies of requests for one run.

    >>> inputs = Inputs([InputField("age", "number")])
    >>> inputs.read(b'{"rows": [{"age": 3}], "level": 0.9}')
    ([{'age': 3.0}], 0.9)
    >>> inputs.read(b'{"rows": [{"agge": 3}]}')
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: rows[0] lacks 'age'. Did you mean 'agge'? Give null where a value is not known.
    """

    def __init__(self, fields: list[InputField], most_rows: int = MOST_ROWS):
        self.most_rows = most_rows
        self.names = [field.name for field in fields]
        row = TypedDict("Row", {field.name: type_of(field) for field in fields})  # pyright: ignore
        rows = Annotated[list[row], Field(min_length=1, max_length=most_rows, description="One object for each row.")]
        level = Annotated[Annotated[Number, Field(gt=0, lt=1)] | None, Field(description=LEVEL)]
        entries = {"rows": rows, "level": NotRequired[level]}
        body = TypedDict("Body", entries)  # pyright: ignore
        self.row: TypeAdapter[Any] = TypeAdapter(row)
        self.body: TypeAdapter[Any] = TypeAdapter(body)

    def read(self, content: bytes) -> tuple[list[dict[str, Any]], float | None]:
        """Rows and level of a JSON body; what is wrong is said in a sentence."""
        try:
            body = self.body.validate_json(content)
        except ValidationError as error:
            raise WonderlandError(self.sentence(error)) from error
        return body["rows"], body.get("level")

    def sentence(self, error: ValidationError) -> str:
        """The first fault of a request, and how many more there are."""
        faults = error.errors(include_url=False, include_context=False)
        first, more = faults[0], len(faults) - 1
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"]).lstrip(".")
        if first["type"] == "json_invalid":
            text = f"The body is not JSON: {first['msg'].removeprefix('Invalid JSON: ')}."
        elif first["type"] == "missing" and len(first["loc"]) > 1:
            where, _, _ = place.rpartition(f".{first['loc'][-1]}")
            others = [name for name in first["input"] if name not in self.names]
            text = f"{where} lacks {first['loc'][-1]!r}.{nearest(str(first['loc'][-1]), others)} Give null where a value is not known."
        elif first["type"] == "missing":
            text = f'The body lacks {place!r}: send {{"rows": [{{...}}]}}, one object for each row.'
        elif first["type"] in ("too_short", "too_long"):
            text = f"{place}: a request has from 1 to {self.most_rows:,} rows; send more in parts, or as CSV."
        else:
            message = first["msg"].removeprefix("Value error, ")
            text = f"{place or 'The body'}: {message}, not {str(first['input'])[:60]!r}."
        return text + (f" There {'is' if more == 1 else 'are'} {more} more." if more else "")
