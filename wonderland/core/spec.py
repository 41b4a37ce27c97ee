"""Specs: a part of a model as data. A name from a closed set and JSON arguments; built as often as needed."""

import gc
import inspect
import operator
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary, ref

from wonderland.core.errors import WonderlandError, nearest

if TYPE_CHECKING:
    from wonderland.core.typed_spec import TypedSpec

Thing = TypeVar("Thing", bound=Callable[..., Any])

_PARTS: dict[str, Callable[..., Any]] = {}
_NAMES: dict[Callable[..., Any], str] = {}
_OWN: WeakKeyDictionary[Callable[..., Any], str] = WeakKeyDictionary()  # names of users' own classes and functions
_SIGNATURES: WeakKeyDictionary[Callable[..., Any], Mapping[str, inspect.Parameter]] = WeakKeyDictionary()
_NAMESAKES: dict[str, list[ref[Callable[..., Any]]]] = {}  # earlier ones of the same name, while anybody has them
_LARGEST = 1 << 24  # no honest argument of a part is larger; a hostile one could ask for all memory
_DEEPEST = 32
_LONGEST = 1 << 16
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def part(thing: Thing) -> Thing:
    """Put a class or function into the closed set of things a saved model may name.

    The public name is the folder and the name: `nn.MLP`, `models.TableNet`. Classes that are also a `Part` have `spec`.
    """
    name = f"{thing.__module__.split('.')[1]}.{thing.__name__}"
    assert _PARTS.get(name, thing).__module__ == thing.__module__, f"two parts are called {name}"
    _PARTS[name] = thing
    _NAMES[thing] = name
    return thing


def published(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a class method that builds a published size, so that text may name it: `ResNet.resnet18(classes=10)`.

    The method calls `cls` with named arguments and nothing else: given `cls.spec`, it gives the spec of that size.
    """
    method.published = True  # pyright: ignore[reportFunctionMemberAccess]
    return method


def published_spec(cls: type, name: str, arguments: Mapping[str, Any]) -> "Spec":
    """The spec of a published size of a class, by the name of its class method."""
    method = inspect.getattr_static(cls, name, None)
    function = method.__func__ if isinstance(method, classmethod) else None
    if not getattr(function, "published", False):
        known = [
            key
            for owner in cls.__mro__
            for key, value in vars(owner).items()
            if getattr(getattr(value, "__func__", None), "published", False)
        ]
        sizes = f" Its published sizes are {', '.join(known)}." if known else " It has no published sizes."
        raise WonderlandError(f"{cls.__name__} has no size {name[:80]!r}.{sizes}")
    assert function is not None
    return function(cls.spec, **arguments)  # pyright: ignore[reportAttributeAccessIssue]


def parts() -> list[str]:
    """Every name of the closed set that has been imported."""
    return sorted(_PARTS)


@dataclass(frozen=True)
class Spec:
    """An immutable recipe for one part: its public name and its arguments, other specs among them.

    `part` is the class or function itself, found by its name where it is not given.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    part: Any = field(default=None, repr=False)
    depth: int = field(default=1, init=False, repr=False, compare=False)

    def __post_init__(self):
        part: Any = find(self.name) if self.part is None else self.part
        object.__setattr__(self, "part", part)
        depth = 1 + max((value.depth for value in _inner(self.arguments)), default=0)
        if depth > _DEEPEST:
            raise WonderlandError(f"A spec is nested more than {_DEEPEST} levels deep: build it flatter.")
        object.__setattr__(self, "depth", depth)
        known = _parameters(self.name, part)
        if not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values()):
            for key in self.arguments:
                if key not in known:
                    raise WonderlandError(f"{self.name} has no argument {key!r}.{nearest(key, known)}")
        object.__setattr__(self, "arguments", deepcopy(dict(self.arguments)))

    def build(self, **more: Any) -> Any:
        """Call the part, building the specs among its arguments first; `more` adds what only the caller knows."""
        if twice := sorted(set(self.arguments) & set(more)):
            raise WonderlandError(f"{self.name} is given {twice[0]} where it is built: leave it out of its spec.")
        for name, parameter in _parameters(self.name, self.part).items():
            asked = parameter.default is parameter.empty and parameter.kind in _BY_NAME
            if asked and name not in self.arguments and name not in more:
                short = self.name.split(".")[-1]
                raise WonderlandError(f"{self.name} cannot be built without {name}: write {short}({name}=...).")
        lazy = getattr(self.part, "takes_specs", False)
        arguments = {key: value if lazy else _built(value) for key, value in self.arguments.items()}
        if self.name.startswith("own."):
            return _maker(self.part)(**arguments, **more)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", "Initializing zero-element tensors")
                return _maker(self.part)(**arguments, **more)
        except WonderlandError:
            raise
        except UserWarning as warning:
            raise WonderlandError(
                f"{self.name} cannot be built with these arguments: one of its sizes is 0."
            ) from warning
        except (
            TypeError,
            ValueError,
            RuntimeError,
            ArithmeticError,
            AssertionError,
            AttributeError,
            LookupError,
        ) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
            raise WonderlandError(f"{self.name} cannot be built with these arguments: {reason}.") from error

    def changed(self, **arguments: Any) -> "Spec":
        """The same part with these arguments in place of its own."""
        return Spec(self.name, {**self.arguments, **arguments}, self.part)

    def own_parts(self) -> list[Any]:
        """The user's own classes and functions in this spec: `from_json` builds with those it is given."""
        nested = [part for spec in _inner(self.arguments) for part in spec.own_parts()]
        return ([self.part] if self.name.startswith("own.") else []) + nested

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"part": self.name, "arguments": _encode(self.arguments, self.name)}

    @staticmethod
    def from_json(value: Any, *, own: Iterable[Callable[..., Any]] = ()) -> "Spec":
        """Read a spec that may come from anywhere: names outside the set and absurd sizes are refused.

        `own` are the user's own classes that it may name, beside those that were admitted.
        """
        decoded = _decode(value, 0, _by_name(own))
        if not isinstance(decoded, Spec):
            raise WonderlandError("A model's description must be a part with its arguments.")
        return decoded


class Part:
    """A class of the closed set that can be written down: `Model.spec(dim=64)` is its description."""

    if TYPE_CHECKING:
        spec = TypedSpec()
    else:

        @classmethod
        def spec(cls, *unnamed: Any, **arguments: Any) -> Spec:
            """An immutable description of an instance, to build later and as often as needed."""
            if unnamed:
                raise WonderlandError(
                    f"{cls.__name__}.spec takes its arguments by name: write {cls.__name__}.spec(name=value)."
                )
            if cls not in _NAMES and cls not in _OWN:
                admit([cls])
            return Spec(_NAMES.get(cls) or _OWN[cls], arguments, cls)


def find(name: str) -> Callable[..., Any]:
    """The part behind a public name."""
    if name not in _PARTS:
        raise WonderlandError(
            f"{str(name)[:80]!r} is not a part of Wonderland, so it is not built.{nearest(str(name)[:80], _PARTS)}"
        )
    if namesakes := _namesakes(name):
        places = " and ".join(sorted(f"{each.__module__}.{each.__qualname__}" for each in (_PARTS[name], *namesakes)))
        raise WonderlandError(
            f"{name} stands for several classes, {places}: rename all but one, or load with own=[...]."
        )
    return _PARTS[name]


def _maker(thing: Callable[..., Any]) -> Callable[..., Any]:
    """What a spec calls: the part itself, or its `from_spec`, where arguments and call belong to different moments."""
    return getattr(thing, "from_spec", thing)


def _parameters(name: str, thing: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The arguments of a part. Those of the library are kept, since reading them was a quarter of the time of loading a run."""
    if name.startswith("own."):
        return inspect.signature(_maker(thing)).parameters
    known = _SIGNATURES.get(thing)
    if known is None:
        known = _SIGNATURES[thing] = inspect.signature(_maker(thing)).parameters
    return known


def admit(things: Iterable[Callable[..., Any]]) -> None:
    """Let a user's own classes be named in this process, as `own.ClassName`.

    While two classes of one name are in use, the name stands for neither: each still builds its own specs, but a saved
    description that names them is refused. A class that was defined again in its module takes the place of the older one.
    """
    for name, thing in _by_name(things).items():
        before = _PARTS.get(name)
        if before is not None and before is not thing:
            _NAMESAKES.setdefault(name, []).append(ref(before))
        _PARTS[name] = thing
        _OWN[thing] = name


def _by_name(things: Iterable[Callable[..., Any]]) -> dict[str, Callable[..., Any]]:
    """A user's own classes under their public names."""
    named: dict[str, Callable[..., Any]] = {}
    for thing in things:
        name = f"own.{thing.__name__}"
        if named.setdefault(name, thing) is not thing:
            raise WonderlandError(f"Two different classes are called {thing.__name__}: rename one of them.")
    return named


def _namesakes(name: str) -> list[Callable[..., Any]]:
    """Other classes of this name that are still in use and were not defined again since."""
    if name not in _NAMESAKES:
        return []
    gc.collect()  # classes are only freed by a collection, and those of a finished function are in nobody's way
    thing = _PARTS[name]
    others = dict.fromkeys(each for each in (reference() for reference in _NAMESAKES.pop(name)) if each is not None)
    in_use = [each for each in others if each is not thing and not _defined_again(each, thing)]
    if in_use:
        _NAMESAKES[name] = [ref(each) for each in in_use]
    return in_use


def _defined_again(older: Callable[..., Any], newer: Callable[..., Any]) -> bool:
    """Whether a class stands where another stood, as after a cell of a notebook ran twice."""
    if (older.__module__, older.__qualname__) != (newer.__module__, newer.__qualname__) or "<" in newer.__qualname__:
        return False
    try:
        return operator.attrgetter(newer.__qualname__)(sys.modules.get(newer.__module__)) is newer
    except AttributeError:
        return False


def name_of(thing: Any) -> str | None:
    """The public name of a part, if it has one."""
    return _NAMES.get(thing) or _OWN.get(thing) if isinstance(thing, type | FunctionType) else None


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


def _decode(value: Any, depth: int, own: Mapping[str, Callable[..., Any]]) -> Any:
    if depth > _DEEPEST:
        raise WonderlandError(f"A model's description is nested more than {_DEEPEST} levels deep, so it is not built.")
    if isinstance(value, dict):
        if set(value) == {"part", "arguments"} and isinstance(value["arguments"], dict):
            if not isinstance(value["part"], str):
                raise WonderlandError("A part's name must be text.")
            arguments = {str(key): _decode(item, depth + 1, own) for key, item in value["arguments"].items()}
            return Spec(value["part"], arguments, own.get(value["part"]))
        if set(value) == {"function"}:
            name = value["function"] if isinstance(value["function"], str) else repr(value["function"])
            return own.get(name) or find(name)
        return {str(key): _decode(item, depth + 1, own) for key, item in value.items()}
    if isinstance(value, list):
        if len(value) > _LONGEST:
            raise WonderlandError("A model's description holds a list of more than 65,536 entries, so it is not built.")
        return [_decode(item, depth + 1, own) for item in value]
    if isinstance(value, int):
        check_size(value)
    return value


def check_size(value: int) -> None:
    """Refuse a whole number in a description that is larger than any honest argument."""
    if not -_LARGEST <= value <= _LARGEST:
        raise WonderlandError(
            f"A model's description asks for a size above the limit of {_LARGEST:,}, so it is not built."
        )
