"""Functions recorded as single steps: user primitives with their own rules, and torch.autograd.Function."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointFunction

from wonderland.autodiff.rules.table import RULES, Rule
from wonderland.autodiff.threads import SharedPatch
from wonderland.core import WonderlandError


class Primitive:
    """A function that is recorded as one step and has its own derivative rules; made by `primitive`."""

    def __init__(self, function: Callable[..., Any], name: str):
        self.function, self.display_name = function, name
        self.__doc__, self.__name__ = function.__doc__, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from wonderland.autodiff.recorder import ACTIVE

        if not ACTIVE:
            return self.function(*args, **kwargs)
        with _disable_current_modes(), torch._C.DisableTorchFunction(), torch.no_grad():
            result = self.function(*args, **kwargs)
        for recorder in ACTIVE:
            recorder.record(self, args, kwargs, result)
        return result

    def __repr__(self) -> str:
        return self.display_name


def primitive(
    *, vjp: Callable[..., Any], jvp: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Primitive]:
    """Decorator that makes a function one step of a trace with its own derivative rules: NumPy code, C++, a solver.

    `vjp(g, y, *args)` takes the cotangent of the output, the output and the arguments, and returns a cotangent (or None) for
    each argument. `jvp(tangents, y, *args)` takes a tangent or None for each argument; without it, forward mode transposes
    the reverse rule, which must then consist of torch operations.

    >>> @primitive(vjp=lambda g, y, x: (g * 3 * x**2,))
    ... def cube(x):
    ...     return torch.from_numpy(x.numpy() ** 3)
    >>> from wonderland import autodiff
    >>> autodiff.grad(lambda x: cube(x).sum())(torch.tensor([2.0]))
    tensor([12.])
    """

    def wrap(function: Callable[..., Any]) -> Primitive:
        wrapped = Primitive(function, getattr(function, "__qualname__", "primitive"))

        def reverse(needs: Any, g: Any, n: Any) -> Any:
            cotangents = vjp(g, n.y, *n.args)
            cotangents = cotangents if isinstance(cotangents, tuple | list) else (cotangents,)
            if len(cotangents) != len(n.args):
                raise WonderlandError(
                    f"The vjp rule of {wrapped.display_name} returned {len(cotangents)} cotangents for {len(n.args)} arguments: "
                    "return one for each, None for arguments without a derivative."
                )
            return dict(enumerate(cotangents))

        RULES[wrapped] = Rule(joint=reverse, tangent=None if jvp is None else partial(_call_jvp, jvp))
        return wrapped

    return wrap


def _call_jvp(jvp: Callable[..., Any], t: dict[int, Any], n: Any) -> Any:
    return jvp(tuple(t.get(number) for number in range(len(n.args))), n.y, *n.args)


class Context:
    """The `ctx` of an autograd function: what its forward pass saves for its backward pass."""

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self.needs_input_grad = needs_input_grad
        self.saved_tensors: tuple[Any, ...] = ()
        self.single_output, self.materialize_grads = True, True
        self.nondifferentiable: set[int] = set()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Ignored: forward mode transposes the backward pass."""

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        self.nondifferentiable = {id(tensor) for tensor in tensors}

    def mark_dirty(self, *_: Tensor) -> None:
        raise WonderlandError("An autograd function that writes into its inputs cannot be traced: return a new tensor.")

    def set_materialize_grads(self, value: bool) -> None:
        self.materialize_grads = value


class FunctionCall:
    """One call of an autograd function as a step: it returns the outputs, then other tensors saved for the backward pass."""

    own_rule: Rule | None = None  # the rule of this call; kept here so that it is freed with the recording

    def __init__(self, function: Any):
        self.function, self.display_name = function, f"{function.__module__}.{function.__qualname__}"

    def __call__(self, *args: Any) -> Any:
        from wonderland.autodiff.recorder import ACTIVE

        if ACTIVE:
            return _run_and_record(self.function, args)[0]
        outputs, saved, _ = run_forward(self.function, args)
        return (*outputs, *saved)

    def __repr__(self) -> str:
        return self.display_name


def run_forward(function: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[Tensor], "Context"]:
    """Outputs of an autograd function, tensors it saved that are neither inputs nor outputs, and its context."""
    context = Context(tuple(isinstance(entry, Tensor) and _is_differentiable(entry) for entry in args))
    inputs = tuple(entry.detach() if isinstance(entry, Tensor) else entry for entry in args)
    originals = {id(new): old for new, old in zip(inputs, args, strict=True) if isinstance(new, Tensor)}
    if function.setup_context is not torch.autograd.Function.setup_context:
        result = function.forward(*inputs)
        function.setup_context(context, inputs, result)
    else:
        result = function.forward(context, *inputs)
    context.single_output = not isinstance(result, tuple)
    outputs = (result,) if context.single_output else result
    outputs = tuple(out.view_as(out) if isinstance(out, Tensor) and id(out) in originals else out for out in outputs)
    # Saved inputs are replaced by the original tensors, which the recorders know.
    context.saved_tensors = tuple(originals.get(id(entry), entry) for entry in context.saved_tensors)
    for name, entry in list(vars(context).items()):
        if isinstance(entry, Tensor) and id(entry) in originals:
            setattr(context, name, originals[id(entry)])
    known = {id(entry) for entry in (*args, *outputs)}
    saved = [*context.saved_tensors, *(entry for entry in vars(context).values() if isinstance(entry, Tensor))]
    other = {id(entry): entry for entry in saved if isinstance(entry, Tensor) and id(entry) not in known}
    return outputs, list(other.values()), context


def _is_differentiable(tensor: Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _call_function(function: Any, *args: Any) -> Any:
    if (
        function is CheckpointFunction
    ):  # torch's checkpointing: record what it runs, since memory is planned on the trace
        return args[0](*args[2:])
    results, context, count = _run_and_record(function, args)
    return results[0] if context.single_output else results[:count]


def _run_and_record(function: Any, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], "Context", int]:
    """Run an autograd function and record it as one step: its results, its context, and how many results are outputs."""
    from wonderland.autodiff.recorder import ACTIVE

    depends = [recorder.depends_on_inputs for recorder in ACTIVE]
    with (
        _disable_current_modes(),
        torch._C.DisableTorchFunction(),
        torch.no_grad(),
        _ClosureGuard(function, args, depends),
    ):
        outputs, saved, context = run_forward(function, args)
    step = FunctionCall(function)
    nondifferentiable = tuple(number for number, out in enumerate(outputs) if id(out) in context.nondifferentiable)
    step.own_rule = Rule(joint=_backward(step, context, len(outputs)), nondifferentiable=nondifferentiable)
    for recorder in ACTIVE:
        recorder.record(step, args, {}, (*outputs, *saved))
    return (*outputs, *saved), context, len(outputs)


class _ClosureGuard(TorchDispatchMode):
    """Raises an error when a forward pass reads a tensor of the program that is not an argument: its derivative would be lost."""

    def __init__(self, function: Any, args: tuple[Any, ...], depends: list[Callable[[Tensor], bool]]):
        super().__init__()
        self.function, self.depends, self.args = function, depends, {id(entry) for entry in args}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for entry in tree_leaves((args, kwargs)):
            if (
                isinstance(entry, Tensor)
                and id(entry) not in self.args
                and any(depends(entry) for depends in self.depends)
            ):
                raise WonderlandError(
                    f"{self.function.__name__} reads a tensor of the program that is not among its arguments, "
                    "so its derivative would be lost: pass it to apply()."
                )
        return func(*args, **(kwargs or {}))


def _backward(call: FunctionCall, context: Context, count: int) -> Callable[..., Any]:
    """The reverse rule of one call: the function's own backward pass, on what its forward pass saved."""

    def reverse(needs: Any, g: Any, n: Any) -> Any:
        cotangents = g if isinstance(g, tuple) else (g,)
        if any(cotangent is not None for cotangent in cotangents[count:]):
            raise WonderlandError(
                f"{call.display_name} saves a tensor that is neither an input nor an output, so its backward pass cannot be "
                "differentiated again: save inputs and outputs only, or write it with torch operations."
            )
        outputs = n.y if isinstance(n.y, tuple) else (n.y,)
        cotangents = tuple(
            torch.zeros_like(y)
            if cotangent is None and context.materialize_grads and isinstance(y, Tensor)
            else cotangent
            for cotangent, y in zip(cotangents[:count], outputs[:count], strict=True)
        )
        gradients = call.function.backward(context, *cotangents)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return dict(enumerate(gradients))

    return reverse


def _patch_apply() -> Any:
    """Replace torch.autograd.Function.apply, so that calls are recorded as single steps in threads that record."""
    original = torch.autograd.Function.__dict__["apply"]

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        from wonderland.autodiff.recorder import ACTIVE

        return _call_function(cls, *args, **kwargs) if ACTIVE else original.__get__(None, cls)(*args, **kwargs)

    torch.autograd.Function.apply = classmethod(apply)  # pyright: ignore[reportAttributeAccessIssue]
    return original


def _restore_apply(original: Any) -> None:
    torch.autograd.Function.apply = original


AUTOGRAD_FUNCTIONS_AS_PRIMITIVES = SharedPatch(_patch_apply, _restore_apply)
