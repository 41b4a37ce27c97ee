"""The type of `Part.spec` for type checkers: the arguments of the part's constructor, any leading ones left out.

Arguments that only the builder knows, such as the width of a mixer or the number of classes, come first in a constructor,
and a spec may leave them out. A misspelt argument, or one of a wrong type, is an error of the type checker.
"""

from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from wonderland.core.spec import Spec

P = ParamSpec("P")
Owner = TypeVar("Owner")
Maker = TypeVar("Maker", covariant=True)


class SpecCall(Generic[Maker]):
    """`spec` of one class: called as its constructor is, without up to four of the first arguments."""

    @overload
    def __call__(self: "SpecCall[Callable[P, Any]]", *args: P.args, **kwargs: P.kwargs) -> Spec: ...
    @overload
    def __call__(self: "SpecCall[Callable[Concatenate[Any, P], Any]]", *args: P.args, **kwargs: P.kwargs) -> Spec: ...
    @overload
    def __call__(
        self: "SpecCall[Callable[Concatenate[Any, Any, P], Any]]", *args: P.args, **kwargs: P.kwargs
    ) -> Spec: ...
    @overload
    def __call__(
        self: "SpecCall[Callable[Concatenate[Any, Any, Any, P], Any]]", *args: P.args, **kwargs: P.kwargs
    ) -> Spec: ...
    @overload
    def __call__(
        self: "SpecCall[Callable[Concatenate[Any, Any, Any, Any, P], Any]]", *args: P.args, **kwargs: P.kwargs
    ) -> Spec: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Spec:
        """A description of an instance."""
        raise NotImplementedError


class TypedSpec:
    """The attribute `spec` of a class."""

    def __get__(self, instance: object, owner: Owner) -> SpecCall[Owner]:
        raise NotImplementedError
