"""Traces: a function of tensors as the list of operators that it ran, to read, run again and differentiate."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.utils._pytree import tree_flatten, tree_unflatten

from wonderland.autodiff import code, cost, memory
from wonderland.autodiff.node import Step, Value, map_tree
from wonderland.autodiff.program import Program
from wonderland.autodiff.recorder import ACTIVE
from wonderland.autodiff.recording import module_names, no_torch_graph
from wonderland.autodiff.tape import pull
from wonderland.autodiff.transforms import Recorded, _name
from wonderland.core import WonderlandError

_TENSOR = object()  # stands for a tensor among the arguments of the traced call


class Trace:
    """The evaluation trace of a function: its operators in order, with shapes, costs and source lines.

    Printing it gives Python code that runs. Calling it runs the steps on tensors of the same shapes. `reverse()` is the
    trace of the program that computes its gradients. Where the function branched on values, the trace has the branch that
    was taken. Writes into module buffers, as of BatchNorm in training, are repeated by every run: `effects` lists them.
    """

    def __init__(self, run: Recorded, name: str, labels: list[str] | None = None, buffers: Sequence[Tensor] = ()):
        self.name = name
        self.nesting, self.out_nesting = run.nesting, run.out_nesting
        self.inputs = list(run.inputs)
        self.outputs: list[Any] = [
            value if value is not None else entry for value, entry in zip(run.outputs, run.flat, strict=True)
        ]
        steps, replaced = _without_identities(run.steps)
        self.outputs = [replaced.get(id(value), value) for value in self.outputs]
        written = run.recorder.effects()
        self.effects = [(tensor, replaced.get(id(value), value)) for tensor, _, value in written]
        if buffers:  # the last outputs are the new values of these buffers
            self.effects += list(zip(buffers, self.outputs[-len(buffers) :], strict=True))
            del self.outputs[-len(buffers) :]
            self.out_nesting = tree_flatten([0] * len(self.outputs))[1]
        self.steps = _needed(steps, [value for value in self.kept if isinstance(value, Value)])
        used = {id(value) for step in self.steps for value in step.inputs} | {id(value) for value in self.kept}
        # Buffers are read at each run, other constants keep the value they had while tracing.
        live = {id(before): tensor for tensor, before, _ in written}
        self.before = [(tensor, before.now) for tensor, before, _ in written if before.now is not None]
        self.constants = [
            (value, live.get(id(value), value.now))
            for value in run.recorder.constants
            if id(value) in used and value.now is not None
        ]
        self.plain = [_TENSOR if isinstance(entry, Tensor) else entry for entry in run.given]
        self.given = [entry.detach() for entry in run.given if isinstance(entry, Tensor)]
        self.fixed_strides = any(cost.packet(step.target).startswith("as_strided") for step in self.steps)
        self.labels = labels or [f"x{number}" if number else "x" for number in range(len(self.inputs))]
        constants = {id(value) for value, _ in self.constants}
        for step in self.steps:
            for value in (*step.inputs, *step.outputs):
                if id(value) not in constants:
                    value.now = None
        for value in self.inputs:
            value.now = None

    @property
    def kept(self) -> list[Any]:
        """All results of a run: the outputs, then the new values of buffers."""
        return [*self.outputs, *(value for _, value in self.effects)]

    @cached_property
    def names(self) -> dict[int, str]:
        """A name for every value."""
        names: dict[int, str] = {}
        taken: set[str] = set()

        def name(value: Value, wanted: str) -> None:
            text, number = wanted, 2
            while text in taken:
                text, number = f"{wanted}_{number}", number + 1
            taken.add(text)
            names[id(value)] = text

        for value, label in zip(self.inputs, self.labels, strict=True):
            name(value, code.identifier(label))
        for number, (value, _) in enumerate(self.constants):
            name(value, f"c{number}")
        count = 0
        for step in self.steps:
            for value in step.outputs:
                if id(value) not in names:
                    name(value, f"v{count}")
                    count += 1
        return names

    @cached_property
    def program(self) -> Program:
        """The steps as closures, created at the first run."""
        return Program(self.inputs, self.constants, self.steps, self.kept)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = self._flat(args, kwargs)
        with no_torch_graph():
            return self._in_nesting(self._write_buffers(self.program(tensors)))

    def _write_buffers(self, results: Sequence[Any]) -> Sequence[Any]:
        """Write the new values of buffers, and return the outputs."""
        if self.effects:
            with torch.no_grad():
                for (tensor, _), new in zip(self.effects, results[len(self.outputs) :], strict=True):
                    for recorder in ACTIVE:
                        recorder.track_buffer(tensor)
                    tensor.copy_(new)
        return results[: len(self.outputs)]

    def compile(self, **options: Any) -> Callable[..., Any]:
        """The trace compiled with `torch.compile(**options)`; it is called like the trace."""
        compiled = torch.compile(self.graph(), **options)

        def run(*args: Any, **kwargs: Any) -> Any:
            tensors = self._flat(args, kwargs)
            with torch.no_grad():
                return self._in_nesting(self._write_buffers(compiled(*tensors)))

        return run

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        """The tensors among the arguments, checked against the shapes, dtypes and plain arguments of the traced call."""
        flat, nesting = tree_flatten((args, kwargs))
        if nesting != self.nesting:
            raise WonderlandError(
                f"This trace takes arguments nested as when it was made: {self.nesting}, not {nesting}."
            )
        for entry, fixed in zip(flat, self.plain, strict=True):
            if isinstance(entry, Tensor) != (fixed is _TENSOR) or (fixed is not _TENSOR and entry != fixed):
                traced = "a tensor" if fixed is _TENSOR else repr(fixed)
                raise WonderlandError(
                    f"This trace was made with {traced} where {_describe(entry)} is given now: trace again."
                )
        tensors = [entry for entry in flat if isinstance(entry, Tensor)]
        for label, value, tensor in zip(self.labels, self.inputs, tensors, strict=True):
            if tuple(tensor.shape) != value.shape or tensor.dtype != value.dtype:
                given = Value.of(tensor, True).describe()
                raise WonderlandError(
                    f"This trace was made for {label} of {value.describe()}, not of {given}: trace again."
                )
        if not self.fixed_strides:
            return tensors
        # as_strided steps depend on the strides of inputs, so inputs get the strides that were traced.
        return [with_strides(tensor, value.stride) for tensor, value in zip(tensors, self.inputs, strict=True)]

    def _in_nesting(self, results: Sequence[Any]) -> Any:
        """Outputs in the nesting that the function returned."""
        flat = [
            entry if isinstance(value, Value) else value for entry, value in zip(results, self.outputs, strict=True)
        ]
        return tree_unflatten(flat, self.out_nesting)

    def reverse(self) -> "Trace":
        """The trace that computes the output and the gradients with respect to all floating point inputs.

        It takes the arguments of this trace, nested alike, and after the positional ones, unless the output is a scalar, a
        cotangent for each output. It returns a list: the outputs, then a gradient for each argument that has one, nested like
        the argument (None for what has no derivative).

        >>> program = trace(lambda p: (p["w"] * p["x"]).sum(), {"w": torch.ones(2), "x": torch.arange(2.0)})
        >>> program.reverse()({"w": torch.ones(2), "x": torch.arange(2.0)})
        [tensor(1.), {'w': tensor([0., 1.]), 'x': tensor([1., 1.])}]
        """
        outputs = [value for value in self.outputs if isinstance(value, Value)]
        smooth = [value for value in outputs if value.smooth]
        if not smooth:
            raise WonderlandError(f"{self.name} returns nothing that has a derivative.")
        single = len(outputs) == 1 and outputs[0].numel == 1 and not outputs[0].dtype.is_complex

        given = iter(self.given)
        whole = [next(given) if entry is _TENSOR else entry for entry in self.plain]
        args, kwargs = tree_unflatten(whole, self.nesting)
        nestings = []

        def joint(*positional: Any, **keywords: Any) -> Any:
            own, cotangents = positional[: len(args)], list(positional[len(args) :])
            entries = tree_flatten((own, keywords))[0]
            tensors = [entry for entry in entries if isinstance(entry, Tensor)]
            inner = Recorded(lambda *x: _split_at(self.program(x), len(self.outputs)), tuple(tensors), has_aux=True)
            if single:
                like = inner.flat[0]
                cotangents = [torch.ones(like.shape, dtype=like.dtype, device=like.device)]
            sources = [value for value in inner.inputs if value.smooth]
            ends = [value for value in inner.outputs if value is not None and value.smooth]
            pulled = iter(pull(inner.steps, sources, ends, cotangents))
            gradients = []
            for entry in entries:
                smooth_entry = isinstance(entry, Tensor) and (entry.is_floating_point() or entry.is_complex())
                gradient = next(pulled) if smooth_entry else None
                gradients.append(torch.zeros_like(entry) if smooth_entry and gradient is None else gradient)
            by_place, by_name = tree_unflatten(gradients, self.nesting)
            nested = [
                gradient
                for gradient in (*by_place, *by_name.values())
                if any(entry is not None for entry in tree_flatten(gradient)[0])
            ]
            nestings.append(tree_flatten([*inner.flat, *nested])[1])
            return [*inner.flat, *nested, *(inner.aux or ())]

        extra = [] if single else [torch.ones(value.shape, dtype=value.dtype, device=value.device) for value in smooth]
        first = sum(isinstance(entry, Tensor) for entry in tree_flatten(args)[0])
        cotangent_labels = [f"g{number}" if number else "g" for number in range(len(extra))]
        labels = [*self.labels[:first], *cotangent_labels, *self.labels[first:]]
        buffers = [tensor for tensor, _ in self.effects]
        run = Recorded(joint, (*args, *extra), kwargs, differentiates=False)
        program = Trace(run, f"{self.name}_reverse", labels, buffers)
        program.out_nesting = nestings[-1]
        return program

    @cached_property
    def flops(self) -> int:
        """Floating point operations of one run."""
        return sum(cost.flops(step) for step in self.steps)

    @cached_property
    def bytes(self) -> int:
        """Bytes that the steps read and write."""
        return sum(cost.bytes_moved(step) for step in self.steps)

    def timeline(self) -> list[memory.Moment]:
        """Bytes of intermediate values alive at each step."""
        return memory.timeline(self.inputs, self.steps, self.kept, [value for value, _ in self.constants])

    @cached_property
    def peak(self) -> int:
        """The most bytes of intermediate values alive at once."""
        return max((moment.live for moment in self.timeline()), default=0)

    def graph(self) -> Any:
        """The trace as a torch.fx module, for `torch.compile` and other tools; it takes the inputs as a flat list."""
        from wonderland.autodiff.graph import graph

        return graph(self)

    def code(self) -> str:
        """The trace as Python."""
        return code.python_source(self)

    @property
    def captured(self) -> dict[str, Any]:
        """The keyword arguments of the printed program beside its inputs: constants, buffers, functions, generators."""
        return code.captured(self)

    def __str__(self) -> str:
        return self.code()

    def __repr__(self) -> str:
        return f"Trace of {self.name}: {len(self.steps)} steps, {self.flops:,} operations"

    def __len__(self) -> int:
        return len(self.steps)

    def table(self) -> str:
        """A text table: operator, result, cost and source line of each step."""
        from wonderland.autodiff.show import table

        return table(self)

    def html(self) -> str:
        """The trace as an HTML page."""
        from wonderland.autodiff.show import page

        return page(self)

    def _repr_html_(self) -> str:
        from wonderland.autodiff.show import fragment

        return fragment(self)


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Trace:
    """Run a function, or a module with its parameters, and return the trace of what it ran.

    The parameters of a module become the first input: the trace is called as trace(parameters(module), *args).

    >>> program = trace(lambda x: (x.exp() + 1).sum(), torch.zeros(3))
    >>> [step.name for step in program.steps]
    ['aten.exp.default', 'aten.add.Tensor', 'aten.sum.default']
    >>> program(torch.ones(3))
    tensor(11.1548)
    """
    if isinstance(f, nn.Module):
        params = parameters(f)
        run = Recorded(partial(call, f), (params, *args), kwargs, differentiates=False)
        return Trace(run, type(f).__name__, [*params, *_labels((args, kwargs))])
    return Trace(
        Recorded(f, args, kwargs, differentiates=False),
        _name(f) if _name(f) != "<lambda>" else "program",
        _labels((args, kwargs)),
    )


def parameters(module: nn.Module) -> dict[str, Tensor]:
    """The parameters of a module by name, detached; tied parameters appear once."""
    if any(isinstance(value, UninitializedParameter) for value in module.parameters()):
        raise WonderlandError(
            "The module has lazy layers whose shapes are not known yet: call it once on data, then take its parameters."
        )
    return {name: value.detach() for name, value in module.named_parameters()}


def call(module: nn.Module, own: dict[str, Tensor], *args: Any, **kwargs: Any) -> Any:
    """Call a module with other tensors in place of its parameters, as `torch.func.functional_call` does.

    >>> layer = nn.Linear(2, 1)
    >>> call(layer, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, torch.ones(2))
    tensor([2.])
    """
    with swapped_parameters(module, own), ExitStack() as stack:
        for recorder in ACTIVE:
            stack.enter_context(module_names(module, recorder))
        return module(*args, **kwargs)


@contextmanager
def swapped_parameters(module: nn.Module, own: dict[str, Tensor]) -> Iterator[None]:
    """A context in which a module's parameters, tied ones everywhere, are replaced by other tensors."""
    known = dict(module.named_parameters())
    for name in own:
        if name not in known:
            raise WonderlandError(f"{type(module).__name__} has no parameter {name!r}.")
    new = {id(known[name]): tensor for name, tensor in own.items()}
    originals: list[tuple[nn.Module, str, Any]] = []
    try:
        for child in module.modules():
            for name, value in child._parameters.items():
                if value is not None and id(value) in new:
                    originals.append((child, name, value))
        for child, name, value in originals:
            child._parameters[name] = new[id(value)]  # pyright: ignore[reportArgumentType]
        yield
    finally:
        for child, name, value in originals:
            child._parameters[name] = value


def with_strides(tensor: Tensor, stride: tuple[int, ...]) -> Tensor:
    """A tensor with these strides, copied if its own differ."""
    if tensor.stride() == stride and not tensor.storage_offset():
        return tensor
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _split_at(results: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    return results[:count], results[count:]


def _describe(entry: Any) -> str:
    return "a tensor" if isinstance(entry, Tensor) else repr(entry)


def _labels(tree: Any) -> list[str]:
    """Names for the tensors among the arguments: keywords by name, others by position."""
    args, kwargs = tree
    labels: list[str] = []

    def walk(entry: Any, label: str) -> None:
        if isinstance(entry, Tensor):
            labels.append(label)
        elif isinstance(entry, dict):
            for key, child in entry.items():
                walk(child, str(key))
        elif isinstance(entry, list | tuple):
            for number, child in enumerate(entry):
                walk(child, f"{label}_{number}")

    for number, entry in enumerate(args):
        walk(entry, f"x{number}" if len(args) > 1 else "x")
    for key, entry in kwargs.items():
        walk(entry, key)
    return labels


def _without_identities(steps: list[Step]) -> tuple[list[Step], dict[int, Value]]:
    """The steps without identities (views of the same shape, `detach` of a constant), and the value that replaces each."""
    same: dict[int, Value] = {}
    kept = []
    for step in steps:
        if same and any(id(value) in same for value in step.inputs):
            change = lambda value: same.get(id(value), value)  # noqa: E731
            step = replace(step, args=map_tree(step.args, Value, change), kwargs=map_tree(step.kwargs, Value, change))
            for value in step.outputs:
                value.origin_ref = weakref.ref(step)
        name, value = cost.packet(step.target), step.result
        identity = (
            name in ("view", "alias", "expand", "_unsafe_view")
            and isinstance(value, Value)
            and value.shape == step.inputs[0].shape
            and value.dtype == step.inputs[0].dtype
        )
        if identity or (name in ("detach", "lift_fresh") and not step.inputs[0].depends):
            same[id(value)] = step.inputs[0]
        else:
            kept.append(step)
    return kept, same


def _needed(steps: list[Step], outputs: list[Value]) -> list[Step]:
    """The steps that the outputs depend on, in order."""
    wanted = {id(value) for value in outputs}
    kept = []
    for step in reversed(steps):
        if any(id(value) in wanted for value in step.outputs):
            kept.append(step)
            wanted.update(id(value) for value in step.inputs)
    return kept[::-1]
