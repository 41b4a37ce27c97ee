r"""Automatic differentiation as the book writes it: every Jacobian a matrix, multiplied from the right or from the left.

The gradient of a program is one product of Jacobians. Forward mode multiplies while the program runs and carries matrices
with as many columns as there are inputs; reverse mode waits for the output and carries as many rows as that has numbers.
Both give the same; what differs is counted here: products of numbers, and numbers held at once. `jvp` and `vjp` do the
same without any of the matrices.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from wonderland.autodiff.node import Step, Value, over
from wonderland.autodiff.trace import Trace
from wonderland.autodiff.transforms import jacobian
from wonderland.core import WonderlandError


@dataclass(frozen=True)
class Primitive:
    """One operation of a program: a function of the values at the places it reads, and the place where it writes."""

    function: Callable[..., Tensor]
    reads: tuple[int, ...]
    writes: int


@dataclass(frozen=True)
class Program:
    """Primitives in their order. Places 0, 1, ... hold the inputs, those in `held` hold constants from the beginning."""

    primitives: tuple[Primitive, ...]
    inputs: int
    output: int
    held: dict[int, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Derivatives:
    """What the literal algorithms found, and what it took.

    `jacobians` has, for each input that was given, the derivative of the output by it: (a, b) for an output (a) and an
    input (b), None where there was None. `products` counts multiplications of two numbers in products of Jacobians,
    `updates` the matrix products, `kept` the most numbers (values, tangents or adjoints, and the Jacobian at work) that
    were held at once.
    """

    out: Tensor
    jacobians: tuple[Tensor | None, ...]
    products: int
    updates: int
    kept: int

    def gradients(self) -> tuple[Tensor | None, ...]:
        r"""The gradients of the sum of the output: :math:`\mathbf{1}^\top \hat W_i` (Alice E.6.1)."""
        axes = list(range(self.out.dim()))
        return tuple(None if table is None else table.sum(axes) if axes else table for table in self.jacobians)


def literal_forward(program: Trace | Sequence[Callable[..., Tensor]], *inputs: Any) -> Derivatives:
    r"""Forward mode with explicit tangents: the Jacobian of every intermediate value by every input, while the program runs.

    .. math::
        h_i = f_i(h_{i-1}, w_i), \qquad
        \hat W_j \leftarrow [\partial_{h_{i-1}} h_i] \, \hat W_j \quad (j < i), \qquad
        \hat W_i = \partial_{w_i} h_i

    The program is a trace, called with the inputs it was made for, or a chain of functions: the first input is x, the
    i-th after it the weights of function i, or None for a function without. A chain of l primitives with weights takes
    l (l - 1) / 2 updates of the tangents of the weights.

    Shapes: Jacobian of a primitive (c', c), tangent (c, p); an update costs c' c p products. Book: Alice 6.2.

    >>> x, w = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    >>> found = literal_forward([lambda h, w: h * w, lambda h: h.square(), lambda h: h.sum()], x, w, None, None)
    >>> found.out, found.jacobians[1]
    (tensor(73.), tensor([ 6., 32.]))
    """
    ready, tensors, places = _program(program, inputs)
    values = {**ready.held, **dict(enumerate(tensors))}
    # None is the identity, which is neither held nor multiplied; a tangent that is missing is zero.
    tangents: dict[int, dict[int, Tensor | None]] = {
        place: {place: None} for place, tensor in enumerate(tensors) if _smooth(tensor)
    }
    last = {place: number for number, one in enumerate(ready.primitives) for place in (*one.reads, one.writes)}
    products = updates = kept = 0
    for number, one in enumerate(ready.primitives):
        args = [values[place] for place in one.reads]
        values[one.writes] = out = _value(one, args)
        moving = [k for k, place in enumerate(one.reads) if tangents.get(place)] if _smooth(out) else []
        tables = _jacobians(one, args, out, moving)
        found: dict[int, Tensor | None] = {}
        for k, table in zip(moving, tables, strict=True):
            for source, tangent in tangents[one.reads[k]].items():
                if tangent is not None:
                    products, updates = products + table.numel() * tangent.shape[1], updates + 1
                term = table if tangent is None else table @ tangent
                had = found.get(source)
                found[source] = term if had is None else had + term
        tangents[one.writes] = found
        kept = max(kept, _count(values.values(), *(held.values() for held in tangents.values()), tables))
        for place in {*one.reads, one.writes}:
            if last[place] == number and place >= ready.inputs and place != ready.output:
                values.pop(place)
                tangents.pop(place, None)
    out, rows = values[ready.output], tangents.get(ready.output, {})
    return Derivatives(out, _shaped(out, tensors, rows, places), products, updates, kept)


def literal_reverse(program: Trace | Sequence[Callable[..., Tensor]], *inputs: Any) -> Derivatives:
    r"""Reverse mode with explicit Jacobians: the program runs and keeps all, then adjoints go back through it.

    .. math::
        \tilde h_l = I, \qquad
        \partial_{w_i} y = \tilde h_i \, [\partial_{w_i} h_i], \qquad
        \tilde h_{i-1} = \tilde h_i \, [\partial_{h_{i-1}} h_i]

    For an output of one number the adjoints are rows, and every product is one of a vector with a matrix. Programs are
    given as to `literal_forward`. Values that are read several times, shared weights too, add what comes back.

    Shapes: adjoint (o, c'), Jacobian (c', c); a step costs o c' c products. Book: Alice 6.3 (E.6.2-3).

    >>> x, w = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    >>> found = literal_reverse([lambda h, w: h * w, lambda h: h.square(), lambda h: h.sum()], x, w, None, None)
    >>> found.jacobians[0], found.updates
    (tensor([18., 64.]), 3)
    """
    ready, tensors, places = _program(program, inputs)
    values = {**ready.held, **dict(enumerate(tensors))}
    alive = {place for place, tensor in enumerate(tensors) if _smooth(tensor)}
    for one in ready.primitives:
        values[one.writes] = _value(one, [values[place] for place in one.reads])
        if alive.intersection(one.reads) and _smooth(values[one.writes]):
            alive.add(one.writes)
    out = values[ready.output]
    adjoints: dict[int, Tensor | None] = {ready.output: None} if ready.output in alive else {}
    products = updates = 0
    kept = _count(values.values())
    for one in reversed(ready.primitives):
        if one.writes not in adjoints:
            continue
        adjoint = adjoints.pop(one.writes)
        moving = [k for k, place in enumerate(one.reads) if place in alive]
        tables = _jacobians(one, [values[place] for place in one.reads], values[one.writes], moving)
        for k, table in zip(moving, tables, strict=True):
            if adjoint is not None:
                products, updates = products + table.numel() * adjoint.shape[0], updates + 1
            term = table if adjoint is None else adjoint @ table
            had = adjoints.get(one.reads[k])
            adjoints[one.reads[k]] = term if had is None else had + term
        kept = max(kept, _count(values.values(), adjoints.values(), [adjoint], tables))
    return Derivatives(out, _shaped(out, tensors, adjoints, places), products, updates, kept)


def _program(given: Any, inputs: tuple[Any, ...]) -> tuple[Program, list[Tensor], list[int | None]]:
    """The program, its input tensors, and for each input that the caller will hear about its place."""
    if isinstance(given, Trace):
        tensors = [entry for entry in tree_flatten(inputs)[0] if isinstance(entry, Tensor)]
        if len(tensors) != len(given.inputs):
            raise WonderlandError(f"The trace takes {len(given.inputs)} tensors and was given {len(tensors)}.")
        return _from_trace(given), tensors, list(range(len(tensors)))
    functions = list(given)
    if not functions or not inputs:
        raise WonderlandError("A chain has at least one function, and an input for the first.")
    weights = list(inputs[1:]) + [None] * (len(functions) + 1 - len(inputs))
    if len(weights) > len(functions):
        raise WonderlandError(
            f"There are {len(weights)} weights for {len(functions)} functions: one each, None for none."
        )
    tensors = [inputs[0], *(weight for weight in weights if weight is not None)]
    numbers = iter(range(1, len(tensors)))
    owned = [None if weight is None else next(numbers) for weight in weights]
    primitives, here = [], 0
    for number, (function, place) in enumerate(zip(functions, owned, strict=True)):
        there = len(tensors) + number
        primitives.append(Primitive(function, (here,) if place is None else (here, place), there))
        here = there
    program = Program(tuple(primitives), len(tensors), here)
    return program, tensors, [0, *owned[: len(inputs) - 1]]


def _from_trace(trace: Trace) -> Program:
    """The steps of a trace, each output of each step one primitive."""
    if len(trace.outputs) != 1 or not isinstance(trace.outputs[0], Value):
        raise WonderlandError(
            f"{trace.name} gives {len(trace.outputs)} results, and the literal forms are for one tensor."
        )
    places = {id(value): place for place, value in enumerate(trace.inputs)}
    held = {}
    for value, tensor in trace.constants:
        held[places.setdefault(id(value), len(places))] = tensor
    primitives = []
    for step in trace.steps:
        reads = list({id(value): value for value in step.inputs}.values())
        for number, value in enumerate(step.outputs):
            there = places.setdefault(id(value), len(places))
            function = _step(step, reads, None if isinstance(step.result, Value) else number)
            primitives.append(Primitive(function, tuple(places[id(one)] for one in reads), there))
    return Program(tuple(primitives), len(trace.inputs), places[id(trace.outputs[0])], held)


def _step(step: Step, reads: list[Value], number: int | None) -> Callable[..., Tensor]:
    def run(*tensors: Tensor) -> Tensor:
        now = {id(value): tensor for value, tensor in zip(reads, tensors, strict=True)}
        change = lambda value: now[id(value)]  # noqa: E731
        # What ran without a gradient has none here either.
        with nullcontext() if step.smooth else torch.no_grad():
            found = step.target(*over(step.args, Value, change), **over(step.kwargs, Value, change))
        return found if number is None else tree_flatten(found)[0][number]

    return run


def _value(one: Primitive, args: list[Tensor]) -> Tensor:
    with torch.no_grad():
        out = one.function(*args)
    if out.is_complex():
        raise WonderlandError(
            "The literal forms are for real numbers, and the program has complex ones: use jvp or vjp."
        )
    return out


def _jacobians(one: Primitive, args: list[Tensor], out: Tensor, moving: list[int]) -> list[Tensor]:
    """The Jacobian (c', c) of a primitive by each argument that moves."""
    if not moving:
        return []
    tables = jacobian(one.function, tuple(moving))(*args)
    return [table.reshape(out.numel(), args[k].numel()) for k, table in zip(moving, tables, strict=True)]


def _smooth(tensor: Tensor) -> bool:
    return tensor.is_floating_point()


def _count(*groups: Any) -> int:
    return sum(tensor.numel() for group in groups for tensor in group if tensor is not None)


def _shaped(
    out: Tensor, tensors: list[Tensor], found: dict[int, Tensor | None], places: list[int | None]
) -> tuple[Tensor | None, ...]:
    """Derivatives in the shapes of output and inputs, for the inputs as they were given."""
    tables: list[Tensor | None] = []
    for place in places:
        if place is None:
            tables.append(None)
            continue
        wide = tensors[place].numel()
        table = found.get(place, out.new_zeros(out.numel(), wide))
        table = torch.eye(wide, dtype=out.dtype, device=out.device) if table is None else table
        tables.append(table.reshape((*out.shape, *tensors[place].shape)))
    return tuple(tables)
