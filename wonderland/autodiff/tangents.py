r"""Automatic differentiation as the book writes it: every Jacobian a matrix, multiplied from the right or from the left.

The gradient of a program is one product of Jacobians. Forward mode multiplies while the program runs and carries matrices
with as many columns as there are inputs; reverse mode starts at the output and carries as many rows as it has elements.
Both give the same result; what differs, multiplications and memory, is counted here. `jvp` and `vjp` compute the same
without forming any of the matrices.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

from wonderland.autodiff.node import Step, Value, map_tree
from wonderland.autodiff.trace import Trace
from wonderland.autodiff.transforms import jacobian
from wonderland.core import WonderlandError


@dataclass(frozen=True)
class Operation:
    """One operation of a program: a function of the values at places `reads`; its result goes to place `writes`."""

    function: Callable[..., Tensor]
    reads: tuple[int, ...]
    writes: int


@dataclass(frozen=True)
class OperationList:
    """Operations in order. Places 0, 1, ... hold the inputs, the places in `constants` hold constants."""

    operations: tuple[Operation, ...]
    inputs: int
    output: int
    constants: dict[int, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Derivatives:
    """The result of a literal algorithm, and its cost.

    `jacobians` has the Jacobian of the output for each input: (a, b) for an output (a) and an input (b), None for an input
    None. `products` counts scalar multiplications in products of Jacobians, `updates` the matrix products, `kept` the peak
    number of elements in memory (values, tangents or adjoints, and the current Jacobians).
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
    r"""Forward mode with explicit tangents: the Jacobian of every intermediate value, computed while the program runs.

    .. math::
        h_i = f_i(h_{i-1}, w_i), \qquad
        \hat W_j \leftarrow [\partial_{h_{i-1}} h_i] \, \hat W_j \quad (j < i), \qquad
        \hat W_i = \partial_{w_i} h_i

    The program is a trace, called with the inputs it was made for, or a chain of functions: the first input is x, the
    i-th after it the weights of function i, or None for a function without. A chain of l primitives with weights takes
    l (l - 1) / 2 updates of the tangents of the weights.

    Shapes: Jacobian of a primitive (c', c), tangent (c, p); an update costs c' c p products. Book: Alice 6.2.

    >>> x, w = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    >>> result = literal_forward([lambda h, w: h * w, lambda h: h.square(), lambda h: h.sum()], x, w, None, None)
    >>> result.out, result.jacobians[1]
    (tensor(73.), tensor([ 6., 32.]))
    """
    ready, tensors, places = _program(program, inputs)
    values = {**ready.constants, **dict(enumerate(tensors))}
    # None stands for the identity, which is neither stored nor multiplied; a missing tangent is zero.
    tangents: dict[int, dict[int, Tensor | None]] = {
        place: {place: None} for place, tensor in enumerate(tensors) if _smooth(tensor)
    }
    last = {place: number for number, op in enumerate(ready.operations) for place in (*op.reads, op.writes)}
    products = updates = kept = 0
    for number, op in enumerate(ready.operations):
        args = [values[place] for place in op.reads]
        values[op.writes] = out = _value(op, args)
        active = [k for k, place in enumerate(op.reads) if tangents.get(place)] if _smooth(out) else []
        tables = _jacobians(op, args, out, active)
        by_source: dict[int, Tensor | None] = {}
        for k, table in zip(active, tables, strict=True):
            for source, tangent in tangents[op.reads[k]].items():
                if tangent is not None:
                    products, updates = products + table.numel() * tangent.shape[1], updates + 1
                term = table if tangent is None else table @ tangent
                so_far = by_source.get(source)
                by_source[source] = term if so_far is None else so_far + term
        tangents[op.writes] = by_source
        kept = max(kept, _count(values.values(), *(by_source.values() for by_source in tangents.values()), tables))
        for place in {*op.reads, op.writes}:
            if last[place] == number and place >= ready.inputs and place != ready.output:
                values.pop(place)
                tangents.pop(place, None)
    out, rows = values[ready.output], tangents.get(ready.output, {})
    return Derivatives(out, _shaped(out, tensors, rows, places), products, updates, kept)


def literal_reverse(program: Trace | Sequence[Callable[..., Tensor]], *inputs: Any) -> Derivatives:
    r"""Reverse mode with explicit Jacobians: the program runs and keeps all values, then adjoints are propagated backward.

    .. math::
        \tilde h_l = I, \qquad
        \partial_{w_i} y = \tilde h_i \, [\partial_{w_i} h_i], \qquad
        \tilde h_{i-1} = \tilde h_i \, [\partial_{h_{i-1}} h_i]

    For a scalar output the adjoints are row vectors, and every product is vector times matrix. The program is given as to
    `literal_forward`. Adjoints of values that are read several times, such as shared weights, are summed.

    Shapes: adjoint (o, c'), Jacobian (c', c); a step costs o c' c products. Book: Alice 6.3 (E.6.2-3).

    >>> x, w = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    >>> result = literal_reverse([lambda h, w: h * w, lambda h: h.square(), lambda h: h.sum()], x, w, None, None)
    >>> result.jacobians[0], result.updates
    (tensor([18., 64.]), 3)
    """
    ready, tensors, places = _program(program, inputs)
    values = {**ready.constants, **dict(enumerate(tensors))}
    alive = {place for place, tensor in enumerate(tensors) if _smooth(tensor)}
    for op in ready.operations:
        values[op.writes] = _value(op, [values[place] for place in op.reads])
        if alive.intersection(op.reads) and _smooth(values[op.writes]):
            alive.add(op.writes)
    out = values[ready.output]
    adjoints: dict[int, Tensor | None] = {ready.output: None} if ready.output in alive else {}
    products = updates = 0
    kept = _count(values.values())
    for op in reversed(ready.operations):
        if op.writes not in adjoints:
            continue
        adjoint = adjoints.pop(op.writes)
        active = [k for k, place in enumerate(op.reads) if place in alive]
        tables = _jacobians(op, [values[place] for place in op.reads], values[op.writes], active)
        for k, table in zip(active, tables, strict=True):
            if adjoint is not None:
                products, updates = products + table.numel() * adjoint.shape[0], updates + 1
            term = table if adjoint is None else adjoint @ table
            so_far = adjoints.get(op.reads[k])
            adjoints[op.reads[k]] = term if so_far is None else so_far + term
        kept = max(kept, _count(values.values(), adjoints.values(), [adjoint], tables))
    return Derivatives(out, _shaped(out, tensors, adjoints, places), products, updates, kept)


def _program(given: Any, inputs: tuple[Any, ...]) -> tuple[OperationList, list[Tensor], list[int | None]]:
    """The program, its input tensors, and the place of each input that the caller passed (None for None)."""
    if isinstance(given, Trace):
        tensors = [entry for entry in tree_flatten(inputs)[0] if isinstance(entry, Tensor)]
        if len(tensors) != len(given.inputs):
            raise WonderlandError(f"The trace takes {len(given.inputs)} tensors and was given {len(tensors)}.")
        return _from_trace(given), tensors, list(range(len(tensors)))
    functions = list(given)
    if not functions or not inputs:
        raise WonderlandError("A chain needs at least one function, and an input for the first.")
    weights = list(inputs[1:]) + [None] * (len(functions) + 1 - len(inputs))
    if len(weights) > len(functions):
        raise WonderlandError(
            f"There are {len(weights)} weights for {len(functions)} functions: give one each, None for a function without."
        )
    tensors = [inputs[0], *(weight for weight in weights if weight is not None)]
    numbers = iter(range(1, len(tensors)))
    owned = [None if weight is None else next(numbers) for weight in weights]
    operations, here = [], 0
    for number, (function, place) in enumerate(zip(functions, owned, strict=True)):
        output = len(tensors) + number
        operations.append(Operation(function, (here,) if place is None else (here, place), output))
        here = output
    program = OperationList(tuple(operations), len(tensors), here)
    return program, tensors, [0, *owned[: len(inputs) - 1]]


def _from_trace(trace: Trace) -> OperationList:
    """The steps of a trace, each output of each step one primitive."""
    if len(trace.outputs) != 1 or not isinstance(trace.outputs[0], Value):
        raise WonderlandError(
            f"{trace.name} returns {len(trace.outputs)} results, and the literal algorithms need a single tensor."
        )
    places = {id(value): place for place, value in enumerate(trace.inputs)}
    constants = {}
    for value, tensor in trace.constants:
        constants[places.setdefault(id(value), len(places))] = tensor
    operations = []
    for step in trace.steps:
        reads = list({id(value): value for value in step.inputs}.values())
        for number, value in enumerate(step.outputs):
            output = places.setdefault(id(value), len(places))
            function = _step(step, reads, None if isinstance(step.result, Value) else number)
            operations.append(Operation(function, tuple(places[id(read)] for read in reads), output))
    return OperationList(tuple(operations), len(trace.inputs), places[id(trace.outputs[0])], constants)


def _step(step: Step, reads: list[Value], number: int | None) -> Callable[..., Tensor]:
    def run(*tensors: Tensor) -> Tensor:
        tensor_by_id = {id(value): tensor for value, tensor in zip(reads, tensors, strict=True)}
        tensor_of = lambda value: tensor_by_id[id(value)]  # noqa: E731
        # A step recorded under no_grad has no derivative here either.
        with nullcontext() if step.grad_enabled else torch.no_grad():
            result = step.target(*map_tree(step.args, Value, tensor_of), **map_tree(step.kwargs, Value, tensor_of))
        return result if number is None else tree_flatten(result)[0][number]

    return run


def _value(op: Operation, args: list[Tensor]) -> Tensor:
    with torch.no_grad():
        out = op.function(*args)
    if out.is_complex():
        raise WonderlandError(
            "The literal algorithms need real numbers, and the program has complex ones: use jvp or vjp."
        )
    return out


def _jacobians(op: Operation, args: list[Tensor], out: Tensor, active: list[int]) -> list[Tensor]:
    """The Jacobian (c', c) of a primitive with respect to each active argument."""
    if not active:
        return []
    tables = jacobian(op.function, tuple(active))(*args)
    return [table.reshape(out.numel(), args[k].numel()) for k, table in zip(active, tables, strict=True)]


def _smooth(tensor: Tensor) -> bool:
    return tensor.is_floating_point()


def _count(*groups: Any) -> int:
    return sum(tensor.numel() for group in groups for tensor in group if tensor is not None)


def _shaped(
    out: Tensor, tensors: list[Tensor], derivatives: dict[int, Tensor | None], places: list[int | None]
) -> tuple[Tensor | None, ...]:
    """The Jacobians in the shapes of output and inputs, for the inputs that the caller passed."""
    tables: list[Tensor | None] = []
    for place in places:
        if place is None:
            tables.append(None)
            continue
        size = tensors[place].numel()
        table = derivatives.get(place, out.new_zeros(out.numel(), size))
        table = torch.eye(size, dtype=out.dtype, device=out.device) if table is None else table
        tables.append(table.reshape((*out.shape, *tensors[place].shape)))
    return tuple(tables)
