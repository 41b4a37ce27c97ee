"""Specs written as calls: `Decoder(dim=128, mixer=Mamba())` as text becomes a spec, and a spec becomes such text.

The text is parsed, never evaluated: names come from the closed set of parts, and every argument is a literal.
"""

import ast
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from wonderland.core.errors import WonderlandError, nearest
from wonderland.core.spec import Spec, check_size, find, name_of, parts, published_spec

FORM = "write it as a call with named arguments, such as Decoder(dim=128, mixer=Mamba())"
_LONGEST_TEXT = 10_000
_DEEPEST = 32  # as deep as a spec may be nested, lists and dicts included


def parse_spec(text: str, *, folders: Sequence[str] = ()) -> Spec:
    """The spec that a text describes: a part's name, or its name with named arguments.

    A name is short (`Mamba`) or with its folder (`nn.Mamba`). Arguments are numbers, text, True, False, None, lists, tuples,
    dicts with text as keys, functions of the closed set (`gelu`), and further parts. Only folders that have been imported
    have parts.

    Args:
        text: for example "Decoder(dim=128, depth=4, mixer=Mamba())".
        folders: where the outermost part may come from, for example ("models",); empty for everywhere.

    >>> import wonderland.nn
    >>> parse_spec("Mamba(dim=8, state_size=4)", folders=["nn"])
    Spec(name='nn.Mamba', arguments={'dim': 8, 'state_size': 4})
    >>> parse_spec("os.system('x')")
    Traceback (most recent call last):
    wonderland.core.errors.WonderlandError: 'os.system' is not a part of Wonderland, so it is not built.
    """
    if not isinstance(text, str):
        raise WonderlandError(f"A part is given as text or as a spec, not as a {type(text).__name__}.")
    if len(text) > _LONGEST_TEXT:
        raise WonderlandError(
            f"A part is described in at most {_LONGEST_TEXT:,} characters, and this has {len(text):,}."
        )
    value = _value(_parsed(text), _shown(text), 0, tuple(folders))
    if isinstance(value, Spec):
        return value
    if name := name_of(value):
        return Spec(name, {}, value)
    raise WonderlandError(f"{_shown(text)} is not the name of a part: {FORM}.")


def write_spec(spec: Spec) -> str:
    """A spec as the text that `parse_spec` reads: short names where they are unique, names with their folder elsewhere.

    >>> import wonderland.nn
    >>> write_spec(parse_spec("nn.MLP( dim = 8, activation = nn.gelu )"))
    'MLP(dim=8, activation=gelu)'
    """
    return _written(spec, spec.name)


def _parsed(text: str) -> ast.expr:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape inside quotes is a matter of taste
            return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        where = f" near character {error.offset}" if error.offset and error.lineno == 1 else ""
        raise WonderlandError(f"{_shown(text)} cannot be read{where}: {FORM}.") from None
    except (RecursionError, MemoryError):
        raise WonderlandError(f"{_shown(text)} is nested too deeply to be read: {FORM}.") from None
    except ValueError:
        raise WonderlandError(f"{_shown(text)} holds characters that are not text: {FORM}.") from None


def _value(node: ast.expr, where: str, depth: int, folders: tuple[str, ...] = ()) -> Any:
    """A literal, a spec or a function; `where` names the argument for messages."""
    if depth > _DEEPEST:
        raise WonderlandError(f"A spec is nested more than {_DEEPEST} levels deep: build it flatter.")
    match node:
        case ast.Attribute() if _class_of(node, folders) is not None:
            return _call(ast.Call(node, [], []), depth, folders)
        case ast.Name() | ast.Attribute():
            part = find(_resolved(_dotted(node), folders))
            return Spec(name_of(part) or "", {}, part) if isinstance(part, type) else part
        case ast.Call():
            return _call(node, depth, folders)
        case ast.Constant(value=None | bool() | str() as value):
            return value
        case ast.Constant(value=int() | float() as value):
            return _number(value, where)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)) if not isinstance(
            value, bool
        ):
            return -_number(value, where)
        case ast.List() | ast.Tuple():
            items = [_value(item, where, depth + 1) for item in node.elts]
            return items if isinstance(node, ast.List) else tuple(items)
        case ast.Dict():
            return _dict(node, where, depth)
    remedy = _LITERALS if depth else FORM
    raise WonderlandError(f"{where} is {_KINDS.get(type(node), 'an expression')}, which is not computed: {remedy}.")


_LITERALS = "give a number, text, True, False, None, a list, a dict or a part"
_KINDS: dict[type, str] = {
    ast.Lambda: "a lambda",
    ast.BinOp: "a calculation",
    ast.UnaryOp: "a calculation",
    ast.BoolOp: "a calculation",
    ast.Compare: "a comparison",
    ast.IfExp: "a condition",
    ast.ListComp: "a comprehension",
    ast.SetComp: "a comprehension",
    ast.DictComp: "a comprehension",
    ast.GeneratorExp: "a comprehension",
    ast.JoinedStr: "an f-string",
    ast.Subscript: "a subscript",
    ast.Starred: "an argument with a star",
    ast.Set: "a set",
    ast.Constant: "a constant of another kind",
}


def _call(node: ast.Call, depth: int, folders: tuple[str, ...]) -> Spec:
    if not isinstance(node.func, ast.Name | ast.Attribute):
        raise WonderlandError(f"What is called must be the name of a part: {FORM}.")
    owner = _class_of(node.func, folders) if isinstance(node.func, ast.Attribute) else None
    name = _resolved(_dotted(node.func), folders) if owner is None else f"{name_of(owner)}.{node.func.attr}"  # pyright: ignore
    short = name.split(".", 1)[1]
    if any(isinstance(item, ast.Starred) for item in node.args) or any(item.arg is None for item in node.keywords):
        raise WonderlandError(f"{name} takes no arguments with stars: {FORM}.")
    if node.args:
        raise WonderlandError(f"Arguments of {name} need their names: write {short}(name=value, ...).")
    arguments: dict[str, Any] = {}
    for keyword in node.keywords:
        assert keyword.arg is not None
        if keyword.arg in arguments:
            raise WonderlandError(f"{name} is given {keyword.arg} twice: keep one of them.")
        arguments[keyword.arg] = _value(keyword.value, f"{keyword.arg} of {name}", depth + 1)
    return Spec(name, arguments) if owner is None else published_spec(owner, name.rpartition(".")[2], arguments)


def _class_of(node: ast.Attribute, folders: tuple[str, ...]) -> type | None:
    """The class before the last dot of `ResNet.resnet18` or `models.ResNet.resnet18`; None where it is a folder."""
    inner = node.value
    named = isinstance(inner, ast.Name) or (isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name))
    if not named:
        return None
    name = _dotted(inner)  # pyright: ignore[reportArgumentType]
    if not any(name in (full, full.split(".")[1]) for full in parts()):
        return None
    part = find(_resolved(name, folders))
    return part if isinstance(part, type) else None


def _dict(node: ast.Dict, where: str, depth: int) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise WonderlandError(f"{where} is a dict, whose keys must be text in quotes.")
        if key.value in entries:
            raise WonderlandError(f"{where} has the key {key.value!r} twice: keep one of them.")
        entries[key.value] = _value(value, where, depth + 1)
    return entries


def _number(value: float, where: str) -> float:
    if isinstance(value, int):
        check_size(value)
    elif not math.isfinite(value):
        raise WonderlandError(f"{where} is a number beyond the range of floating point: give a finite one.")
    return value


def _dotted(node: ast.Name | ast.Attribute) -> str:
    """The name that a node spells: `Mamba`, or `nn.Mamba` with one folder."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    raise WonderlandError(f"A part is named as in Mamba or nn.Mamba, with at most one dot: {FORM}.")


def _resolved(name: str, folders: tuple[str, ...] = ()) -> str:
    """The full name of a part, from its short or full name."""
    known = parts()
    allowed = [full for full in known if not folders or full.split(".")[0] in folders]
    matches = [full for full in allowed if name in (full, full.split(".")[1])]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise WonderlandError(f"{name} stands for {' and for '.join(matches)}: write one of these.")
    if elsewhere := [full for full in known if name in (full, full.split(".")[1])]:
        raise WonderlandError(f"{elsewhere[0]} cannot be used here: choose a part of {' or '.join(folders)}.")
    hint = nearest(name[:80], allowed if "." in name else [full.split(".")[1] for full in allowed])
    raise WonderlandError(f"{name[:80]!r} is not a part of Wonderland, so it is not built.{hint}")


def _shown(text: str) -> str:
    text = " ".join(text.split()).encode("utf-8", "replace").decode()
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _written(value: Any, where: str) -> str:
    if isinstance(value, Spec):
        inner = ", ".join(f"{key}={_written(item, f'{key} of {value.name}')}" for key, item in value.arguments.items())
        return f"{_shortest(value.name)}({inner})"
    if isinstance(value, type):
        raise WonderlandError(f"{where} is the class {value.__name__}: write {value.__name__}.spec().")
    if name := name_of(value):
        return _shortest(name)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{str(key)!r}: {_written(item, where)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return f"[{', '.join(_written(item, where) for item in value)}]"
    if isinstance(value, tuple):
        return f"({', '.join(_written(item, where) for item in value)}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and not math.isfinite(value):
        raise WonderlandError(f"{where} is {value}, which cannot be written: give a finite number.")
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise WonderlandError(f"{where} is a {type(value).__name__}, which cannot be written: use numbers, text or parts.")


def _shortest(name: str) -> str:
    short = name.split(".")[1]
    return short if sum(full.split(".")[1] == short for full in parts()) == 1 else name
