"""Programs inside programs: primitives of one's own, and torch's autograd functions, which bring a backward pass along."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointFunction

from wonderland.autodiff.local import Shared
from wonderland.autodiff.rules.table import RULES, Rule
from wonderland.core import WonderlandError


class Primitive:
    """A function that a trace takes as one step, with its rules; made by `primitive`."""

    def __init__(self, function: Callable[..., Any], name: str):
        self.function, self.name_ = function, name
        self.__doc__, self.__name__ = function.__doc__, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from wonderland.autodiff.record import ACTIVE

        if not ACTIVE:
            return self.function(*args, **kwargs)
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
            result = self.function(*args, **kwargs)
        for recorder in ACTIVE:
            recorder.note(self, args, kwargs, result)
        return result

    def __repr__(self) -> str:
        return self.name_


def primitive(
    *, vjp: Callable[..., Any], jvp: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Primitive]:
    """Make a function a primitive with rules of its own, whatever it does inside: NumPy, C++, a solver.

    `vjp(g, y, *args)` takes the cotangent of the output, the output and the arguments, and gives a cotangent (or None) for
    each argument. `jvp(tangents, y, *args)` takes a tangent or None for each argument; without it, forward mode transposes
    the reverse rule, which then has to be made of torch operations.

    >>> @primitive(vjp=lambda g, y, x: (g * 3 * x**2,))
    ... def cube(x):
    ...     return torch.from_numpy(x.numpy() ** 3)
    >>> from wonderland import autodiff
    >>> autodiff.grad(lambda x: cube(x).sum())(torch.tensor([2.0]))
    tensor([12.])
    """

    def wrap(function: Callable[..., Any]) -> Primitive:
        made = Primitive(function, getattr(function, "__qualname__", "primitive"))

        def reverse(needs: Any, g: Any, n: Any) -> Any:
            found = vjp(g, n.y, *n.args)
            found = found if isinstance(found, tuple | list) else (found,)
            if len(found) != len(n.args):
                raise WonderlandError(
                    f"The vjp rule of {made.name_} gave {len(found)} cotangents for {len(n.args)} arguments: "
                    "give one for each, None where there is none."
                )
            return dict(enumerate(found))

        RULES[made] = Rule(joint=reverse, tangent=None if jvp is None else partial(_pushed, jvp))
        return made

    return wrap


def _pushed(jvp: Callable[..., Any], t: dict[int, Any], n: Any) -> Any:
    return jvp(tuple(t.get(number) for number in range(len(n.args))), n.y, *n.args)


class Context:
    """What an autograd function's forward pass leaves for its backward pass."""

    def __init__(self, needs: tuple[bool, ...]):
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.single, self.fills = True, True
        self.blind: set[int] = set()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Not kept: forward mode transposes the backward pass."""

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self.blind = {id(tensor) for tensor in tensors}

    def mark_dirty(self, *_: Tensor) -> None:
        raise WonderlandError("An autograd function that writes into its inputs cannot be traced: return a new tensor.")

    def set_materialize_grads(self, value: bool) -> None:
        self.fills = value


class Applied:
    """The forward pass of an autograd function as a primitive: its outputs, then what else it saved for its backward pass."""

    own_rule: Rule | None = None  # of this call: held here, so that it goes when the record goes

    def __init__(self, function: Any):
        self.function, self.name_ = function, f"{function.__module__}.{function.__qualname__}"

    def __call__(self, *args: Any) -> Any:
        from wonderland.autodiff.record import ACTIVE

        if ACTIVE:
            return _noted(self.function, args)[0]
        outputs, own, _ = run_forward(self.function, args)
        return (*outputs, *own)

    def __repr__(self) -> str:
        return self.name_


def run_forward(function: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Tensor], "Context"]:
    """Outputs of an autograd function, tensors it saved that are neither inputs nor outputs, and its context."""
    context = Context(tuple(isinstance(entry, Tensor) and _smooth(entry) for entry in args))
    inputs = tuple(entry.detach() if isinstance(entry, Tensor) else entry for entry in args)
    same = {id(new): old for new, old in zip(inputs, args, strict=True) if isinstance(new, Tensor)}
    if function.setup_context is not torch.autograd.Function.setup_context:
        result = function.forward(*inputs)
        function.setup_context(context, inputs, result)
    else:
        result = function.forward(context, *inputs)
    context.single = not isinstance(result, tuple)
    outputs = (result,) if context.single else result
    outputs = tuple(one.view_as(one) if isinstance(one, Tensor) and id(one) in same else one for one in outputs)
    # What was saved is named by the tensors that recorders know: inputs as they were given.
    context.saved_tensors = tuple(same.get(id(entry), entry) for entry in context.saved_tensors)
    for name, entry in list(vars(context).items()):
        if isinstance(entry, Tensor) and id(entry) in same:
            setattr(context, name, same[id(entry)])
    known = {id(entry) for entry in (*args, *outputs)}
    kept = [*context.saved_tensors, *(entry for entry in vars(context).values() if isinstance(entry, Tensor))]
    own = {id(entry): entry for entry in kept if isinstance(entry, Tensor) and id(entry) not in known}
    return outputs, list(own.values()), context


def _smooth(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _applied(function: Any, *args: Any) -> Any:
    if (
        function is CheckpointFunction
    ):  # torch's own checkpointing: what it runs is recorded, memory is planned elsewhere
        return args[0](*args[2:])
    results, context, count = _noted(function, args)
    return results[0] if context.single else results[:count]


def _noted(function: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], "Context", int]:
    """An autograd function run and noted by every recorder: what it gave, its context, how many outputs there are."""
    from wonderland.autodiff.record import ACTIVE

    known = [recorder.knows for recorder in ACTIVE]
    with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad(), _Closed(function, args, known):
        outputs, own, context = run_forward(function, args)
    made = Applied(function)
    blind = tuple(number for number, one in enumerate(outputs) if id(one) in context.blind)
    made.own_rule = Rule(joint=_backward(made, context, len(outputs)), blind=blind)
    for recorder in ACTIVE:
        recorder.note(made, args, {}, (*outputs, *own))
    return (*outputs, *own), context, len(outputs)


class _Closed(TorchDispatchMode):
    """Watches a forward pass for tensors of the program that are no arguments: their derivative would be lost."""

    def __init__(self, function: Any, given: tuple[Any, ...], known: list[Callable[[Tensor], bool]]):
        super().__init__()
        self.function, self.known, self.given = function, known, {id(entry) for entry in given}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for entry in tree_leaves((args, kwargs)):
            if isinstance(entry, Tensor) and id(entry) not in self.given and any(one(entry) for one in self.known):
                raise WonderlandError(
                    f"{self.function.__name__} reads a tensor of the program that is not among its arguments, "
                    "so its derivative would be lost: pass it to apply()."
                )
        return func(*args, **(kwargs or {}))


def _backward(made: Applied, context: Context, count: int) -> Callable[..., Any]:
    """The reverse rule of one call: the function's own backward pass, on what its forward pass saved."""

    def reverse(needs: Any, g: Any, n: Any) -> Any:
        slopes = g if isinstance(g, tuple) else (g,)
        if any(slope is not None for slope in slopes[count:]):
            raise WonderlandError(
                f"{made.name_} saves what is neither an input nor an output of it, so its backward pass cannot be "
                "differentiated again: save inputs and outputs only, or write it with torch operations."
            )
        outputs = n.y if isinstance(n.y, tuple) else (n.y,)
        slopes = tuple(
            torch.zeros_like(y) if slope is None and context.fills and isinstance(y, Tensor) else slope
            for slope, y in zip(slopes[:count], outputs[:count], strict=True)
        )
        found = made.function.backward(context, *slopes)
        found = found if isinstance(found, tuple) else (found,)
        return dict(enumerate(found))

    return reverse


def _patched() -> Any:
    """Calls of autograd functions become single steps, in threads that record."""
    kept = torch.autograd.Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        from wonderland.autodiff.record import ACTIVE

        return _applied(cls, *args, **kwargs) if ACTIVE else kept.__get__(None, cls)(*args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)  # pyright: ignore[reportAttributeAccessIssue]
    return kept


def _unpatched(kept: Any) -> None:
    torch.autograd.Function.apply = kept


FUNCTIONS_AS_PRIMITIVES = Shared(_patched, _unpatched)
