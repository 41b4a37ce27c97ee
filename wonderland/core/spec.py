"""Specs: a part of a model as data. A name from a closed set and JSON arguments; built as often as needed."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeVar

from wonderland.core.errors import WonderlandError, nearest

Thing = TypeVar("Thing", bound=Callable[..., Any])

_PARTS: dict[str, Callable[..., Any]] = {}
_NAMES: dict[Callable[..., Any], str] = {}
_LARGEST = 1 << 24  # no honest argument of a part is larger; a hostile one could ask for all memory
_DEEPEST = 32
_LONGEST = 1 << 16


def part(thing: Thing) -> Thing:
    """Put a class or function into the closed set of things a saved model may name.

    The public name is the folder and the name: `nn.MLP`, `models.TableNet`. Classes that are also a `Part` have `spec`.
    """
    name = f"{thing.__module__.split('.')[1]}.{thing.__name__}"
    assert _PARTS.get(name, thing).__module__ == thing.__module__, f"two parts are called {name}"
    return _enter(name, thing)


def _enter(name: str, thing: Thing) -> Thing:
    _PARTS[name] = thing
    _NAMES[thing] = name
    return thing


def parts() -> list[str]:
    """Every name of the closed set that has been imported."""
    return sorted(_PARTS)


@dataclass(frozen=True)
class Spec:
    """An immutable recipe for one part: its public name and its arguments, other specs among them."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    depth: int = field(default=1, init=False, repr=False, compare=False)

    def __post_init__(self):
        thing = find(self.name)
        depth = 1 + max((value.depth for value in _inner(self.arguments)), default=0)
        if depth > _DEEPEST:
            raise WonderlandError(f"A spec is nested more than {_DEEPEST} levels deep: build it flatter.")
        object.__setattr__(self, "depth", depth)
        known = inspect.signature(_maker(thing)).parameters
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
            for key in self.arguments:
                if key not in known:
                    raise WonderlandError(f"{self.name} has no argument {key!r}.{nearest(key, known)}")
        object.__setattr__(self, "arguments", deepcopy(dict(self.arguments)))

    def build(self, **more: Any) -> Any:
        """Call the part, building the specs among its arguments first; `more` adds what only the caller knows."""
        if twice := sorted(set(self.arguments) & set(more)):
            raise WonderlandError(f"{self.name} is given {twice[0]} where it is built: leave it out of its spec.")
        own = find(self.name)
        lazy = getattr(own, "takes_specs", False)
        arguments = {key: value if lazy else _built(value) for key, value in self.arguments.items()}
        return _maker(own)(**arguments, **more)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"part": self.name, "arguments": _encode(self.arguments, self.name)}

    @staticmethod
    def from_json(value: Any) -> "Spec":
        """Read a spec that may come from anywhere: names outside the set and absurd sizes are refused."""
        decoded = _decode(value, 0)
        if not isinstance(decoded, Spec):
            raise WonderlandError("A model's description must be a part with its arguments.")
        return decoded


class Part:
    """A class of the closed set that can be written down: `Model.spec(dim=64)` is its description."""

    @classmethod
    def spec(cls, **arguments: Any) -> Spec:
        """An immutable description of an instance, to build later and as often as needed."""
        if cls not in _NAMES:
            admit([cls])
        return Spec(_NAMES[cls], arguments)


def find(name: str) -> Callable[..., Any]:
    """The part behind a public name."""
    if name not in _PARTS:
        raise WonderlandError(
            f"{str(name)[:80]!r} is not a part of Wonderland, so it is not built.{nearest(str(name)[:80], _PARTS)}"
        )
    return _PARTS[name]


def _maker(thing: Callable[..., Any]) -> Callable[..., Any]:
    """What a spec calls: the part itself, or its `from_spec`, where arguments and call belong to different moments."""
    return getattr(thing, "from_spec", thing)


def admit(things: Iterable[Callable[..., Any]]) -> None:
    """Let a user's own classes be named in this process, as `own.ClassName`."""
    for thing in things:
        _enter(f"own.{thing.__name__}", thing)


def name_of(thing: Any) -> str | None:
    """The public name of a part, if it has one."""
    return _NAMES.get(thing) if callable(thing) else None


def _inner(value: Any) -> list[Spec]:
    """The specs among arguments, not those inside them."""
    if isinstance(value, Spec):
        return [value]
    if isinstance(value, Mapping):
        return [spec for item in value.values() for spec in _inner(item)]
    return [spec for item in value for spec in _inner(item)] if isinstance(value, list | tuple) else []


def _built(value: Any) -> Any:
    if isinstance(value, Spec):
        return value.build()
    if isinstance(value, list | tuple):
        return type(value)(_built(item) for item in value)
    if isinstance(value, dict):
        return {key: _built(item) for key, item in value.items()}
    return value


def _encode(value: Any, where: str) -> Any:
    if isinstance(value, Spec):
        return value.to_json()
    if name := name_of(value):
        return {"function": name}
    if isinstance(value, Mapping):
        return {str(key): _encode(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_encode(item, where) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise WonderlandError(
        f"{where} holds a {type(value).__name__}, which JSON cannot: use numbers, text, lists, or parts."
    )


def _decode(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise WonderlandError(f"A model's description is nested more than {_DEEPEST} levels deep, so it is not built.")
    if isinstance(value, dict):
        if set(value) == {"part", "arguments"} and isinstance(value["arguments"], dict):
            if not isinstance(value["part"], str):
                raise WonderlandError("A part's name must be text.")
            return Spec(value["part"], {str(key): _decode(item, depth + 1) for key, item in value["arguments"].items()})
        if set(value) == {"function"}:
            return find(value["function"]) if isinstance(value["function"], str) else find(repr(value["function"]))
        return {str(key): _decode(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) > _LONGEST:
            raise WonderlandError("A model's description holds a list of more than 65,536 entries, so it is not built.")
        return [_decode(item, depth + 1) for item in value]
    if isinstance(value, int):
        check_size(value)
    return value


def check_size(value: int) -> None:
    """Refuse a whole number in a description that is larger than any honest argument."""
    if not -_LARGEST <= value <= _LARGEST:
        raise WonderlandError(
            f"A model's description asks for a size above the limit of {_LARGEST:,}, so it is not built."
        )
