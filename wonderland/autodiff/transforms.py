"""Function transforms with the interface of torch.func: gradients, Jacobians, Hessians, and products with them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from wonderland.autodiff.recorder import ACTIVE, plain
from wonderland.autodiff.recording import no_torch_graph, recording
from wonderland.autodiff.tape import pull, push
from wonderland.core import WonderlandError


class Recorded:
    """One recorded run of a function: its steps, its inputs and outputs as flat lists, and their nesting."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any] | None = None,
        *,
        has_aux: bool = False,
        differentiates: bool = True,
        equations: bool = False,
    ):
        if not callable(f):
            raise WonderlandError(
                f"Only a function of tensors or a module can be differentiated or traced, not a {type(f).__name__}."
            )
        flat, self.nesting = tree_flatten((args, kwargs or {}))
        tensors = [_fresh_alias(entry) if isinstance(entry, Tensor) else entry for entry in flat]
        self.given = tensors
        inputs = [entry for entry in tensors if isinstance(entry, Tensor)]
        module = f if isinstance(f, nn.Module) else None
        with recording(inputs, module, differentiates=differentiates, equations=equations) as recorder:
            positional, keywords = tree_unflatten(tensors, self.nesting)
            try:
                out = f(*positional, **keywords)
            except NotImplementedError as error:
                if "HigherOrderOperator" not in str(error):
                    raise
                name = str(error).split("HigherOrderOperator ")[1].split(" ")[0]
                raise WonderlandError(
                    f"The program uses torch's operator {name}, which takes functions as arguments and cannot be traced: "
                    "use Python's if and for instead."
                ) from None
            self.aux = None
            if has_aux:
                out, self.aux = _pair(out)
            self.flat, self.out_nesting = tree_flatten(out)
            for entry in (*flat, *self.flat):
                _check_container(entry)
            self.outputs: list[Any] = [recorder.value(leaf) if isinstance(leaf, Tensor) else None for leaf in self.flat]
        self.recorder, self.steps, self.inputs = recorder, recorder.steps, recorder.inputs
        # Parameters that the function closes over may have attached torch's autograd graph to its results.
        self.out = out if ACTIVE else tree_map(lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, out)
        self.flat = self.flat if ACTIVE else tree_flatten(self.out)[0]

    def argument_gradients(self, pulled: list[Any]) -> list[Any]:
        """A gradient for each tensor among the arguments (zeros instead of None), None for other arguments."""
        gradients = iter(pulled)
        with no_torch_graph():
            return [
                None
                if not isinstance(entry, Tensor)
                else torch.zeros_like(entry)
                if (g := next(gradients)) is None
                else g
                for entry in self.given
            ]

    def nest(self, flat: list[Any]) -> Any:
        """A flat list in the nesting of the arguments."""
        return tree_unflatten(flat, self.nesting)[0]


def _check_container(entry: Any) -> None:
    """Refuse objects that hold tensors and are not registered containers: their tensors would be treated as constants."""
    if not isinstance(entry, Tensor) and any(
        isinstance(attribute, Tensor) for attribute in getattr(entry, "__dict__", {}).values()
    ):
        raise WonderlandError(
            f"Tensors are held by a {type(entry).__name__}, which is not known as a container: "
            "use tuples, lists, dictionaries or named tuples."
        )


def _fresh_alias(tensor: Tensor) -> Tensor:
    """A new tensor object on the same memory, for the recorder to identify as an input."""
    if tensor.layout != torch.strided:
        raise WonderlandError(f"Tensors of layout {tensor.layout} are not traced: convert with .to_dense().")
    plain(tensor)
    if type(tensor) not in (Tensor, nn.Parameter, FakeTensor):
        tensor = tensor.as_subclass(Tensor)
    return tensor.view_as(tensor) if ACTIVE else tensor.detach()


def _pair(out: Any) -> Any:
    if not isinstance(out, tuple) or len(out) != 2:
        raise WonderlandError(
            "With has_aux=True the function must return a pair: (output to differentiate, auxiliary output)."
        )
    return out


def _non_none_leaves(tree: Any) -> list[Any]:
    """The leaves of a tree that are not None."""
    return [entry for entry in tree_flatten(tree)[0] if entry is not None]


def _check_tensors(flat: list[Any], role: str) -> list[Tensor]:
    for entry in flat:
        if not isinstance(entry, Tensor):
            raise WonderlandError(
                f"{role} must be tensors, not {type(entry).__name__}: wrap numbers with torch.tensor()."
            )
    if not flat:
        raise WonderlandError(f"{role} must be tensors, and there is none.")
    return flat


def _check_differentiable(tensors: list[Tensor], role: str) -> None:
    for entry in tensors:
        if not (entry.is_floating_point() or entry.is_complex()):
            raise WonderlandError(
                f"{role} include {entry.dtype}, which has no derivatives: convert with .to(torch.float32), or leave it out of argnums."
            )


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Reverse mode: the output of f, and the pullback, which maps a cotangent of the output to cotangents of the primals.

    >>> out, pullback = vjp(torch.sin, torch.zeros(2))
    >>> pullback(torch.ones(2))
    (tensor([1., 1.]),)
    """
    _check_differentiable(_check_tensors(_non_none_leaves(primals), "The primals of vjp"), "The primals of vjp")
    run = Recorded(f, primals, has_aux=has_aux)
    _check_tensors(run.flat, f"The outputs of {_name(f)}")

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        flat, nesting = tree_flatten(cotangents)
        if nesting != run.out_nesting:
            raise WonderlandError(
                f"The cotangents are nested as {nesting}, the output as {run.out_nesting}: give one for each."
            )
        for entry, value in zip(flat, run.flat, strict=True):
            if not isinstance(entry, Tensor) or entry.shape != value.shape:
                actual = tuple(entry.shape) if isinstance(entry, Tensor) else type(entry).__name__
                raise WonderlandError(f"A cotangent has shape {actual} where the output has {tuple(value.shape)}.")
        return run.nest(run.argument_gradients(pull(run.steps, run.inputs, run.outputs, flat)))

    return (run.out, pullback, run.aux) if has_aux else (run.out, pullback)


def _zeros_for_none(results: list[Any], like: list[Any]) -> list[Any]:
    with no_torch_graph():
        return [
            torch.zeros_like(tensor) if result is None else result for result, tensor in zip(results, like, strict=True)
        ]


def _name(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: bool = False) -> Any:
    """Forward mode: the output of f, and its directional derivative along the tangents of the primals.

    >>> jvp(torch.exp, (torch.zeros(1),), (torch.full((1,), 3.0),))
    (tensor([1.]), tensor([3.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise WonderlandError("jvp takes a tuple of primals and a tuple of tangents: jvp(f, (x,), (v,)).")
    nesting, other = tree_flatten(primals)[1], tree_flatten(tangents)[1]
    flat, flat_tangents = _non_none_leaves(primals), _non_none_leaves(tangents)
    _check_differentiable(_check_tensors(flat, "The primals of jvp"), "The primals of jvp")
    if nesting != other or len(flat) != len(flat_tangents):
        raise WonderlandError(f"The tangents are nested as {other}, the primals as {nesting}: give one for each.")
    for primal, tangent in zip(flat, flat_tangents, strict=True):
        if not isinstance(tangent, Tensor) or tangent.shape != primal.shape:
            actual = tuple(tangent.shape) if isinstance(tangent, Tensor) else type(tangent).__name__
            raise WonderlandError(f"A tangent has shape {actual} where the primal has {tuple(primal.shape)}.")
    run = Recorded(f, primals, has_aux=has_aux, equations=True)
    _check_tensors(run.flat, f"The outputs of {_name(f)}")
    pushed = push(run.steps, run.inputs, flat_tangents, run.outputs)
    out_tangent = tree_unflatten(_zeros_for_none(pushed, run.flat), run.out_nesting)
    return (run.out, out_tangent, run.aux) if has_aux else (run.out, out_tangent)


def _argument_numbers(argnums: int | tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    if not all(isinstance(number, int) for number in numbers):
        raise WonderlandError(f"argnums is a number or a tuple of numbers, not {argnums!r}.")
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise WonderlandError(f"argnums names argument {number}, and the function was called with {len(args)}.")
    return tuple(number % len(args) for number in numbers)


def _partial(
    f: Callable[..., Any], numbers: tuple[int, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """The function of the chosen arguments alone."""

    def inner(*chosen: Any) -> Any:
        whole = list(args)
        for number, value in zip(numbers, chosen, strict=True):
            whole[number] = value
        return f(*whole, **kwargs)

    inner.__name__ = _name(f)
    return inner


def value_and_grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns (value, gradient) of a scalar function; with has_aux ((value, aux), gradient).

    >>> value_and_grad(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
    (tensor(5.), tensor([2., 4.]))
    """

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        numbers = _argument_numbers(argnums, args)
        inner = _partial(f, numbers, args, kwargs)
        out, pullback, *aux = vjp(inner, *(args[number] for number in numbers), has_aux=has_aux)
        if not isinstance(out, Tensor) or (out.dim() > 0 and out.numel() != 1) or out.dim() > 0:
            actual = f"a tensor {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
            raise WonderlandError(
                f"grad needs a function that returns a scalar, and {_name(f)} returned {actual}: take .sum(), or use jacobian."
            )
        if out.is_complex() or not out.is_floating_point():
            raise WonderlandError(
                f"grad needs a function that returns a real number, and {_name(f)} returned {out.dtype}."
            )
        gradients = pullback(torch.ones((), dtype=out.dtype, device=out.device))
        return ((out, aux[0]) if has_aux else out), gradients[0] if isinstance(argnums, int) else gradients

    return both


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of a scalar function with respect to the arguments `argnums`, nested like them.

    >>> grad(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    >>> grad(grad(lambda x: x**3))(torch.tensor(2.0))
    tensor(12.)
    """
    both = value_and_grad(f, argnums, has_aux=has_aux)

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        out, gradients = both(*args, **kwargs)
        return (gradients, out[1]) if has_aux else gradients

    return gradient


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of f, and its derivative at this point as a linear function of tangents; f runs once.

    >>> out, derivative = linearize(torch.square, torch.tensor(3.0))
    >>> derivative(torch.tensor(1.0)), derivative(torch.tensor(2.0))
    (tensor(6.), tensor(12.))
    """
    _check_differentiable(
        _check_tensors(tree_flatten(primals)[0], "The primals of linearize"), "The primals of linearize"
    )
    run = Recorded(f, primals, equations=True)
    _check_tensors(run.flat, f"The outputs of {_name(f)}")

    def derivative(*tangents: Any) -> Any:
        flat_tangents, nesting = tree_flatten((tangents, {}))
        if nesting != run.nesting:
            raise WonderlandError("Give as many tangents as there were primals, nested alike.")
        for primal, tangent in zip(run.given, flat_tangents, strict=True):
            if not isinstance(tangent, Tensor) or tangent.shape != primal.shape:
                actual = tuple(tangent.shape) if isinstance(tangent, Tensor) else type(tangent).__name__
                raise WonderlandError(f"A tangent has shape {actual} where the primal has {tuple(primal.shape)}.")
        pushed = push(run.steps, run.inputs, flat_tangents, run.outputs)
        return tree_unflatten(_zeros_for_none(pushed, run.flat), run.out_nesting)

    return run.out, derivative


def jacobian(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, mode: str = "auto") -> Callable[..., Any]:
    """A function that returns all partial derivatives: for an output (a) and an input (b), a tensor (a, b).

    "forward" takes a pass for each input element, "reverse" for each output element, "auto" chooses the smaller count.

    >>> jacobian(lambda x: x**2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise WonderlandError(f"The mode of jacobian is 'forward', 'reverse' or 'auto', not {mode!r}.")

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def jacobians(*args: Any, **kwargs: Any) -> Any:
        numbers = _argument_numbers(argnums, args)
        chosen = tuple(args[number] for number in numbers)
        flat, _ = tree_flatten(chosen)
        _check_differentiable(_check_tensors(flat, "The arguments of jacobian"), "The arguments of jacobian")
        if any(tensor.is_complex() for tensor in flat):
            raise WonderlandError("jacobian is for real arguments: take real and imaginary parts, or use vjp and jvp.")
        run = Recorded(_partial(f, numbers, args, kwargs), chosen, equations=mode != "reverse")
        _check_tensors(run.flat, f"The outputs of {_name(f)}")
        sizes = sum(tensor.numel() for tensor in flat), sum(tensor.numel() for tensor in run.flat)
        forward = mode == "forward" or (mode == "auto" and sizes[0] < sizes[1])
        columns = _columns(run) if forward else _rows(run)
        whole = []
        for out in columns:
            gradients = run.nest(out)
            whole.append(gradients[0] if isinstance(argnums, int) else gradients)
        return tree_unflatten(whole, run.out_nesting)

    return jacobians


def _rows(run: Recorded) -> list[list[Tensor]]:
    """Jacobians by reverse mode: for each output, one for each input."""
    whole = []
    for number, out in enumerate(run.flat):
        rows: list[list[Tensor]] = [[] for _ in run.inputs]
        for index in range(out.numel()):
            g = [torch.zeros_like(entry) if k == number else None for k, entry in enumerate(run.flat)]
            g[number] = _unit(out, index)
            for row, derivative in zip(
                rows, _zeros_for_none(pull(run.steps, run.inputs, run.outputs, g), run.given), strict=True
            ):
                row.append(derivative)
        whole.append(
            [_stacked(row, (*out.shape, *like.shape), like) for row, like in zip(rows, run.given, strict=True)]
        )
    return whole


def _columns(run: Recorded) -> list[list[Tensor]]:
    """Jacobians by forward mode: for each output, one for each input."""
    columns: list[list[list[Tensor]]] = [[[] for _ in run.inputs] for _ in run.flat]
    for number, given in enumerate(run.given):
        for index in range(given.numel()):
            flat_tangents = [_unit(given, index) if k == number else None for k in range(len(run.given))]
            for out, tangent in enumerate(
                _zeros_for_none(push(run.steps, run.inputs, flat_tangents, run.outputs), run.flat)
            ):
                columns[out][number].append(tangent)
    whole = []
    for out, like in enumerate(run.flat):
        row = []
        for number, given in enumerate(run.given):
            pieces = columns[out][number]
            row.append(
                torch.stack(pieces, -1).reshape((*like.shape, *given.shape))
                if pieces
                else like.new_zeros((*like.shape, *given.shape))
            )
        whole.append(row)
    return whole


def _stacked(row: list[Tensor], shape: tuple[int, ...], like: Tensor) -> Tensor:
    return torch.stack(row).reshape(shape) if row else like.new_zeros(shape)


def _unit(like: Tensor, index: int) -> Tensor:
    unit = torch.nn.functional.one_hot(torch.tensor(index, device=like.device), max(like.numel(), 1))
    return unit.to(like.dtype).reshape(like.shape)


def hessian(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns all second derivatives: forward mode over reverse mode.

    >>> hessian(lambda x: x.prod())(torch.tensor([2.0, 3.0]))
    tensor([[0., 1.],
            [1., 0.]])
    """
    return jacobian(jacobian(f, argnums, mode="reverse"), argnums, mode="forward")


def hvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
    """The value of a scalar function, and its Hessian times the tangents, at the cost of a few gradients.

    >>> hvp(lambda x: (x**3).sum(), (torch.tensor([1.0, 2.0]),), (torch.tensor([1.0, 0.0]),))
    (tensor(9.), tensor([6., 0.]))
    """
    argnums = tuple(range(len(primals)))
    _, product, out = jvp(_grad_with_value_as_aux(f, argnums), primals, tangents, has_aux=True)
    return out, product[0] if len(primals) == 1 else product


def _grad_with_value_as_aux(f: Callable[..., Any], argnums: tuple[int, ...]) -> Callable[..., Any]:
    both = value_and_grad(f, argnums)

    def gradient(*args: Any) -> tuple[Any, Any]:
        out, gradients = both(*args)
        return gradients, out

    return gradient


def directional(f: Callable[..., Any], x: Any, direction: Any) -> Any:
    r"""The derivative of f at x along a direction: :math:`D_v f(x) = \lim_{h \to 0} (f(x + hv) - f(x)) / h`. Book: Alice 2.2.2.

    >>> directional(lambda x: (x**2).sum(), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(22.)
    """
    return jvp(f, (x,), (direction,))[1]


def stop_gradient(tree: Any) -> Any:
    """The tensors of a tree detached: same values, zero derivative."""
    return tree_map(lambda entry: entry.detach() if isinstance(entry, Tensor) else entry, tree)
