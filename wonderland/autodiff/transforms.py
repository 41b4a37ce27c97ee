"""Transforms of functions into functions: gradients, Jacobians, Hessians, and the products with them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from wonderland.autodiff.node import Value
from wonderland.autodiff.record import ACTIVE, plain
from wonderland.autodiff.recording import quiet, recording
from wonderland.autodiff.tape import pull, push
from wonderland.core import WonderlandError


class Recorded:
    """A function as it ran once: its steps, its inputs and outputs as flat lists, and how they are nested."""

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
                f"A function of tensors or a module is differentiated and traced, not a {type(f).__name__}."
            )
        flat, self.nesting = tree_flatten((args, kwargs or {}))
        tensors = [_own(entry) if isinstance(entry, Tensor) else entry for entry in flat]
        self.given = tensors
        inputs = [entry for entry in tensors if isinstance(entry, Tensor)]
        module = f if isinstance(f, nn.Module) else None
        with recording(inputs, module, differentiates=differentiates, equations=equations) as recorder:
            own, named = tree_unflatten(tensors, self.nesting)
            try:
                out = f(*own, **named)
            except NotImplementedError as error:
                if "HigherOrderOperator" not in str(error):
                    raise
                name = str(error).split("HigherOrderOperator ")[1].split(" ")[0]
                raise WonderlandError(
                    f"The program uses torch's operator {name}, which takes programs as arguments and is not traced: "
                    "write it with Python's own if and for."
                ) from None
            self.aux = None
            if has_aux:
                out, self.aux = _pair(out)
            self.flat, self.out_nesting = tree_flatten(out)
            for entry in (*flat, *self.flat):
                _opened(entry)
            self.outputs: list[Any] = [recorder.value(one) if isinstance(one, Tensor) else None for one in self.flat]
        self.recorder, self.steps, self.inputs = recorder, recorder.steps, recorder.inputs
        # Parameters that the function closes over may have given its results a graph of torch's.
        self.out = out if ACTIVE else tree_map(lambda one: one.detach() if isinstance(one, Tensor) else one, out)
        self.flat = self.flat if ACTIVE else tree_flatten(self.out)[0]
        named = iter(self.inputs)
        self.places: list[Value | None] = [next(named) if isinstance(entry, Tensor) else None for entry in tensors]

    def woven(self, found: list[Any]) -> list[Any]:
        """Slopes of the tensors among the arguments, zeros where none came, None where an argument was None."""
        slopes = iter(found)
        with quiet():
            return [
                None if not isinstance(one, Tensor) else torch.zeros_like(one) if (g := next(slopes)) is None else g
                for one in self.given
            ]

    def nest(self, flat: list[Any]) -> Any:
        """A flat list in the nesting of the arguments."""
        return tree_unflatten(flat, self.nesting)[0]


def _opened(entry: Any) -> None:
    """Refuse what holds tensors where nobody looks for them: they would stay as they were."""
    if not isinstance(entry, Tensor) and any(
        isinstance(one, Tensor) for one in getattr(entry, "__dict__", {}).values()
    ):
        raise WonderlandError(
            f"Tensors are held by a {type(entry).__name__}, which is not known as a container: "
            "use tuples, lists, dictionaries or named tuples."
        )


def _own(tensor: Tensor) -> Tensor:
    """A tensor object of the program's own, on the same memory."""
    if tensor.layout != torch.strided:
        raise WonderlandError(f"Tensors of layout {tensor.layout} are not traced: convert with .to_dense().")
    plain(tensor)
    if type(tensor) not in (Tensor, nn.Parameter, FakeTensor):
        tensor = tensor.as_subclass(Tensor)
    return tensor.view_as(tensor) if ACTIVE else tensor.detach()


def _pair(out: Any) -> Any:
    if not isinstance(out, tuple) or len(out) != 2:
        raise WonderlandError("With has_aux=True the function returns a pair: what is differentiated, and the rest.")
    return out


def _given(tree: Any) -> list[Any]:
    """The entries of a tree, without those that are None: nothing is there to move."""
    return [entry for entry in tree_flatten(tree)[0] if entry is not None]


def _tensors(flat: list[Any], what: str) -> list[Tensor]:
    for entry in flat:
        if not isinstance(entry, Tensor):
            raise WonderlandError(
                f"{what} are tensors, not of type {type(entry).__name__}: wrap numbers with torch.tensor()."
            )
    if not flat:
        raise WonderlandError(f"{what} are tensors, and there is none.")
    return flat


def _smooth(tensors: list[Tensor], what: str) -> None:
    for entry in tensors:
        if not (entry.is_floating_point() or entry.is_complex()):
            raise WonderlandError(
                f"{what} hold {entry.dtype}, which has no derivatives: convert with .to(torch.float32), or leave it out of argnums."
            )


def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The output of f, and the function that pulls a cotangent of it back to the primals: reverse mode.

    >>> out, pullback = vjp(torch.sin, torch.zeros(2))
    >>> pullback(torch.ones(2))
    (tensor([1., 1.]),)
    """
    _smooth(_tensors(_given(primals), "The primals of vjp"), "The primals of vjp")
    run = Recorded(f, primals, has_aux=has_aux)
    _tensors(run.flat, f"The outputs of {_name(f)}")

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        flat, nesting = tree_flatten(cotangents)
        if nesting != run.out_nesting:
            raise WonderlandError(
                f"The cotangents are nested as {nesting}, the output as {run.out_nesting}: give one for each."
            )
        for entry, value in zip(flat, run.flat, strict=True):
            if not isinstance(entry, Tensor) or entry.shape != value.shape:
                had = tuple(entry.shape) if isinstance(entry, Tensor) else type(entry).__name__
                raise WonderlandError(f"A cotangent has shape {had} where the output has {tuple(value.shape)}.")
        found = pull(run.steps, run.inputs, run.outputs, flat)
        return run.nest(run.woven(found))

    return (run.out, pullback, run.aux) if has_aux else (run.out, pullback)


def _filled(found: list[Any], like: list[Any]) -> list[Any]:
    with quiet():
        return [torch.zeros_like(tensor) if slope is None else slope for slope, tensor in zip(found, like, strict=True)]


def _name(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


def jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, has_aux: bool = False) -> Any:
    """The output of f, and how it moves when the primals move along the tangents: forward mode.

    >>> jvp(torch.exp, (torch.zeros(1),), (torch.full((1,), 3.0),))
    (tensor([1.]), tensor([3.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise WonderlandError("jvp takes a tuple of primals and a tuple of tangents: jvp(f, (x,), (v,)).")
    nesting, other = tree_flatten(primals)[1], tree_flatten(tangents)[1]
    flat, moves = _given(primals), _given(tangents)
    _smooth(_tensors(flat, "The primals of jvp"), "The primals of jvp")
    if nesting != other or len(flat) != len(moves):
        raise WonderlandError(f"The tangents are nested as {other}, the primals as {nesting}: give one for each.")
    for primal, move in zip(flat, moves, strict=True):
        if not isinstance(move, Tensor) or move.shape != primal.shape:
            had = tuple(move.shape) if isinstance(move, Tensor) else type(move).__name__
            raise WonderlandError(f"A tangent has shape {had} where the primal has {tuple(primal.shape)}.")
    run = Recorded(f, primals, has_aux=has_aux, equations=True)
    _tensors(run.flat, f"The outputs of {_name(f)}")
    found = push(run.steps, run.inputs, moves, run.outputs)
    moved = tree_unflatten(_filled(found, run.flat), run.out_nesting)
    return (run.out, moved, run.aux) if has_aux else (run.out, moved)


def _chosen(argnums: int | tuple[int, ...], args: tuple[Any, ...]) -> tuple[int, ...]:
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
    """The function that gives (value, gradient) of a scalar function; with has_aux ((value, aux), gradient).

    >>> value_and_grad(lambda x: (x**2).sum())(torch.tensor([1.0, 2.0]))
    (tensor(5.), tensor([2., 4.]))
    """

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def both(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        inner = _partial(f, numbers, args, kwargs)
        out, pullback, *aux = vjp(inner, *(args[number] for number in numbers), has_aux=has_aux)
        if not isinstance(out, Tensor) or (out.dim() > 0 and out.numel() != 1) or out.dim() > 0:
            had = f"a tensor {tuple(out.shape)}" if isinstance(out, Tensor) else f"a {type(out).__name__}"
            raise WonderlandError(
                f"grad is for functions that give one number, and {_name(f)} gave {had}: take .sum(), or use jacobian."
            )
        if out.is_complex() or not out.is_floating_point():
            raise WonderlandError(f"grad is for functions that give a real number, and {_name(f)} gave {out.dtype}.")
        slopes = pullback(torch.ones((), dtype=out.dtype, device=out.device))
        found = slopes[0] if isinstance(argnums, int) else slopes
        return ((out, aux[0]) if has_aux else out), found

    return both


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """The function that gives the gradient of a scalar function, by the arguments named; nested as they are.

    >>> grad(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    >>> grad(grad(lambda x: x**3))(torch.tensor(2.0))
    tensor(12.)
    """
    both = value_and_grad(f, argnums, has_aux=has_aux)

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def slope(*args: Any, **kwargs: Any) -> Any:
        out, found = both(*args, **kwargs)
        return (found, out[1]) if has_aux else found

    return slope


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The output of f, and its derivative at this point as a function of tangents; the program runs once.

    >>> out, slope = linearize(torch.square, torch.tensor(3.0))
    >>> slope(torch.tensor(1.0)), slope(torch.tensor(2.0))
    (tensor(6.), tensor(12.))
    """
    _smooth(_tensors(tree_flatten(primals)[0], "The primals of linearize"), "The primals of linearize")
    run = Recorded(f, primals, equations=True)
    _tensors(run.flat, f"The outputs of {_name(f)}")

    def slope(*tangents: Any) -> Any:
        moves, nesting = tree_flatten((tangents, {}))
        if nesting != run.nesting:
            raise WonderlandError("Give as many tangents as there were primals, nested alike.")
        for primal, move in zip(run.given, moves, strict=True):
            if not isinstance(move, Tensor) or move.shape != primal.shape:
                had = tuple(move.shape) if isinstance(move, Tensor) else type(move).__name__
                raise WonderlandError(f"A tangent has shape {had} where the primal has {tuple(primal.shape)}.")
        found = push(run.steps, run.inputs, moves, run.outputs)
        return tree_unflatten(_filled(found, run.flat), run.out_nesting)

    return run.out, slope


def jacobian(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, mode: str = "auto") -> Callable[..., Any]:
    """The function that gives all partial derivatives: for an output (a) and an input (b), a tensor (a, b).

    "forward" runs once for each input number, "reverse" for each output number, "auto" chooses the smaller count.

    >>> jacobian(lambda x: x**2)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if mode not in ("auto", "forward", "reverse"):
        raise WonderlandError(f"jacobian has the modes 'forward', 'reverse' and 'auto', not {mode!r}.")

    @wraps(f, assigned=("__name__", "__doc__"), updated=())
    def table(*args: Any, **kwargs: Any) -> Any:
        numbers = _chosen(argnums, args)
        chosen = tuple(args[number] for number in numbers)
        flat, _ = tree_flatten(chosen)
        _smooth(_tensors(flat, "The arguments of jacobian"), "The arguments of jacobian")
        if any(tensor.is_complex() for tensor in flat):
            raise WonderlandError("jacobian is for real arguments: take real and imaginary parts, or use vjp and jvp.")
        run = Recorded(_partial(f, numbers, args, kwargs), chosen, equations=mode != "reverse")
        _tensors(run.flat, f"The outputs of {_name(f)}")
        sizes = sum(tensor.numel() for tensor in flat), sum(tensor.numel() for tensor in run.flat)
        forward = mode == "forward" or (mode == "auto" and sizes[0] < sizes[1])
        columns = _columns(run) if forward else _rows(run)
        whole = []
        for out in columns:
            slopes = run.nest(out)
            whole.append(slopes[0] if isinstance(argnums, int) else slopes)
        return tree_unflatten(whole, run.out_nesting)

    return table


def _rows(run: Recorded) -> list[list[Tensor]]:
    """Jacobians by reverse mode: for each output, one for each input."""
    whole = []
    for number, out in enumerate(run.flat):
        rows: list[list[Tensor]] = [[] for _ in run.inputs]
        for index in range(out.numel()):
            g = [torch.zeros_like(entry) if k == number else None for k, entry in enumerate(run.flat)]
            g[number] = _unit(out, index)
            for row, slope in zip(rows, _filled(pull(run.steps, run.inputs, run.outputs, g), run.given), strict=True):
                row.append(slope)
        whole.append(
            [_stacked(row, (*out.shape, *like.shape), like) for row, like in zip(rows, run.given, strict=True)]
        )
    return whole


def _columns(run: Recorded) -> list[list[Tensor]]:
    """Jacobians by forward mode: for each output, one for each input."""
    columns: list[list[list[Tensor]]] = [[[] for _ in run.inputs] for _ in run.flat]
    for number, given in enumerate(run.given):
        for index in range(given.numel()):
            moves = [_unit(given, index) if k == number else None for k in range(len(run.given))]
            for out, move in enumerate(_filled(push(run.steps, run.inputs, moves, run.outputs), run.flat)):
                columns[out][number].append(move)
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
    """The function that gives all second derivatives: forward mode over reverse mode.

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
    several = tuple(range(len(primals)))
    _, moved, out = jvp(_value_beside(f, several), primals, tangents, has_aux=True)
    return out, moved[0] if len(primals) == 1 else moved


def _value_beside(f: Callable[..., Any], several: tuple[int, ...]) -> Callable[..., Any]:
    both = value_and_grad(f, several)

    def slope(*args: Any) -> tuple[Any, Any]:
        out, found = both(*args)
        return found, out

    return slope


def directional(f: Callable[..., Any], x: Any, direction: Any) -> Any:
    r"""The derivative of f at x along a direction: :math:`D_v f(x) = \lim_{h \to 0} (f(x + hv) - f(x)) / h`. Book: Alice 2.2.2.

    >>> directional(lambda x: (x**2).sum(), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(22.)
    """
    return jvp(f, (x,), (direction,))[1]


def stop_gradient(tree: Any) -> Any:
    """The same numbers, through which no derivative flows."""
    return tree_map(lambda entry: entry.detach() if isinstance(entry, Tensor) else entry, tree)
