"""Traces: a function of tensors as the list of primitives that it ran, to read, to run again and to differentiate."""

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
from wonderland.autodiff.node import Step, Value, over
from wonderland.autodiff.program import Program
from wonderland.autodiff.record import ACTIVE
from wonderland.autodiff.recording import named, quiet
from wonderland.autodiff.tape import pull
from wonderland.autodiff.transforms import Recorded, _name
from wonderland.core import WonderlandError

_MOVES = object()  # stands for a tensor among arguments that stay as they were


class Trace:
    """The evaluation trace of a function: its primitives in order, with shapes, costs and source lines.

    Print it for Python that runs; call it with tensors of the same shapes to run it; `reverse()` is the program that computes
    its gradients, again a trace. Where the function decided by its numbers, the trace has the branch that was taken. What
    the function wrote into buffers of modules, as BatchNorm does in training, every run writes again: `effects` has them.
    """

    def __init__(self, run: Recorded, name: str, labels: list[str] | None = None, buffers: Sequence[Tensor] = ()):
        self.name = name
        self.nesting, self.out_nesting = run.nesting, run.out_nesting
        self.inputs = list(run.inputs)
        self.outputs: list[Any] = [
            value if value is not None else entry for value, entry in zip(run.outputs, run.flat, strict=True)
        ]
        steps, same = _tidy(run.steps)
        self.outputs = [same.get(id(value), value) for value in self.outputs]
        written = run.recorder.effects()
        self.effects = [(tensor, same.get(id(value), value)) for tensor, _, value in written]
        if buffers:  # the last outputs are what buffers are left with
            self.effects += list(zip(buffers, self.outputs[-len(buffers) :], strict=True))
            del self.outputs[-len(buffers) :]
            self.out_nesting = tree_flatten([0] * len(self.outputs))[1]
        self.steps = _needed(steps, [value for value in self.kept if isinstance(value, Value)])
        used = {id(value) for step in self.steps for value in step.inputs} | {id(value) for value in self.kept}
        # A buffer is read as it is at each run, all else as it was.
        live = {id(before): tensor for tensor, before, _ in written}
        self.before = [(tensor, before.now) for tensor, before, _ in written if before.now is not None]
        self.constants = [
            (value, live.get(id(value), value.now))
            for value in run.recorder.constants
            if id(value) in used and value.now is not None
        ]
        self.plain = [_MOVES if isinstance(entry, Tensor) else entry for entry in run.given]
        self.given = [entry.detach() for entry in run.given if isinstance(entry, Tensor)]
        self.laid_out = any(cost.packet(step.target).startswith("as_strided") for step in self.steps)
        self.labels = labels or [f"x{number}" if number else "x" for number in range(len(self.inputs))]
        held = {id(value) for value, _ in self.constants}
        for step in self.steps:
            for value in (*step.inputs, *step.outputs):
                if id(value) not in held:
                    value.now = None
        for value in self.inputs:
            value.now = None

    @property
    def kept(self) -> list[Any]:
        """What is there at the end of a run: the outputs, then what buffers are left with."""
        return [*self.outputs, *(value for _, value in self.effects)]

    @cached_property
    def names(self) -> dict[int, str]:
        """A name for every value."""
        found: dict[int, str] = {}
        taken: set[str] = set()

        def name(value: Value, wanted: str) -> None:
            text, number = wanted, 2
            while text in taken:
                text, number = f"{wanted}_{number}", number + 1
            taken.add(text)
            found[id(value)] = text

        for value, label in zip(self.inputs, self.labels, strict=True):
            name(value, code.identifier(label))
        for number, (value, _) in enumerate(self.constants):
            name(value, f"c{number}")
        count = 0
        for step in self.steps:
            for value in step.outputs:
                if id(value) not in found:
                    name(value, f"v{count}")
                    count += 1
        return found

    @cached_property
    def program(self) -> Program:
        """The trace as closures, made at the first run."""
        return Program(self.inputs, self.constants, self.steps, self.kept)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = self._flat(args, kwargs)
        with quiet():
            return self._nested(self._written(self.program(tensors)))

    def _written(self, found: Sequence[Any]) -> Sequence[Any]:
        """The outputs of a run, after its buffers were written."""
        if self.effects:
            with torch.no_grad():
                for (tensor, _), new in zip(self.effects, found[len(self.outputs) :], strict=True):
                    for recorder in ACTIVE:
                        recorder.lasts(tensor)
                    tensor.copy_(new)
        return found[: len(self.outputs)]

    def compile(self, **options: Any) -> Callable[..., Any]:
        """The trace as machine code, by `torch.compile` with its options; called as the trace is."""
        compiled = torch.compile(self.graph(), **options)

        def run(*args: Any, **kwargs: Any) -> Any:
            tensors = self._flat(args, kwargs)
            with torch.no_grad():
                return self._nested(self._written(compiled(*tensors)))

        return run

    def _flat(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        """The tensors among the arguments, if they are such as the trace was made with."""
        flat, nesting = tree_flatten((args, kwargs))
        if nesting != self.nesting:
            raise WonderlandError(f"This trace takes its arguments as it was made with: {self.nesting}, not {nesting}.")
        for entry, fixed in zip(flat, self.plain, strict=True):
            if isinstance(entry, Tensor) != (fixed is _MOVES) or (fixed is not _MOVES and entry != fixed):
                had = "a tensor" if fixed is _MOVES else repr(fixed)
                raise WonderlandError(f"This trace was made with {had} where {_told(entry)} is given now: trace again.")
        tensors = [entry for entry in flat if isinstance(entry, Tensor)]
        for label, value, tensor in zip(self.labels, self.inputs, tensors, strict=True):
            if tuple(tensor.shape) != value.shape or tensor.dtype != value.dtype:
                had = Value.of(tensor, True).words()
                raise WonderlandError(f"This trace was made for {label} of {value.words()}, not of {had}: trace again.")
        if not self.laid_out:
            return tensors
        # Steps look at memory by its layout, so inputs get the layout that was traced.
        return [laid(tensor, value.stride) for tensor, value in zip(tensors, self.inputs, strict=True)]

    def _nested(self, found: Sequence[Any]) -> Any:
        """Outputs in the nesting that the function gave them."""
        flat = [entry if isinstance(value, Value) else value for entry, value in zip(found, self.outputs, strict=True)]
        return tree_unflatten(flat, self.out_nesting)

    def reverse(self) -> "Trace":
        """The program that gives the output and the gradients by all inputs of floating point numbers.

        It takes the inputs of this trace, then, unless the output is one number, a cotangent for each output.
        """
        outputs = [value for value in self.outputs if isinstance(value, Value)]
        smooth = [value for value in outputs if value.smooth]
        if not smooth:
            raise WonderlandError(f"{self.name} gives nothing that has a derivative.")
        single = len(outputs) == 1 and outputs[0].numel == 1 and not outputs[0].dtype.is_complex

        def joint(*flat: Tensor) -> Any:
            tensors, slopes = list(flat[: len(self.inputs)]), list(flat[len(self.inputs) :])
            inner = Recorded(lambda *x: _halves(self.program(x), len(self.outputs)), tuple(tensors), has_aux=True)
            if single:
                like = inner.flat[0]
                slopes = [torch.ones(like.shape, dtype=like.dtype, device=like.device)]
            sources = [value for value in inner.inputs if value.smooth]
            ends = [value for value in inner.outputs if value is not None and value.smooth]
            found = pull(inner.steps, sources, ends, slopes)
            named = iter(found)
            pairs = [(tensor, next(named)) for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]
            gradients = [torch.zeros_like(tensor) if slope is None else slope for tensor, slope in pairs]
            return [*inner.flat, *gradients, *(inner.aux or ())]

        flat = self.given
        extra = [] if single else [torch.ones(one.shape, dtype=one.dtype, device=one.device) for one in smooth]
        labels = self.labels + [f"g{number}" if number else "g" for number in range(len(extra))]
        buffers = [tensor for tensor, _ in self.effects]
        run = Recorded(joint, (*flat, *extra), differentiates=False)
        return Trace(run, f"{self.name}_reverse", labels, buffers)

    @cached_property
    def flops(self) -> int:
        """Floating point operations of one run."""
        return sum(cost.flops(step) for step in self.steps)

    @cached_property
    def bytes(self) -> int:
        """Bytes that the steps read and write."""
        return sum(cost.moved(step) for step in self.steps)

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
        return code.written(self)

    @property
    def closed(self) -> dict[str, Any]:
        """What the printed program takes by name beside its inputs: constants, buffers, functions, generators."""
        return code.closed(self)

    def __str__(self) -> str:
        return self.code()

    def __repr__(self) -> str:
        return f"Trace of {self.name}: {len(self.steps)} steps, {self.flops:,} operations"

    def __len__(self) -> int:
        return len(self.steps)

    def table(self) -> str:
        """One line a step: what it is, what it gives, what it costs, where it came from."""
        from wonderland.autodiff.show import table

        return table(self)

    def html(self) -> str:
        """A page to look at."""
        from wonderland.autodiff.show import page

        return page(self)

    def _repr_html_(self) -> str:
        from wonderland.autodiff.show import fragment

        return fragment(self)


def trace(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Trace:
    """Run a function, or a module with its parameters, and keep what it did.

    A module's parameters become inputs before the others: the trace is called as trace(parameters(module), *args).

    >>> found = trace(lambda x: (x.exp() + 1).sum(), torch.zeros(3))
    >>> [step.name for step in found.steps]
    ['aten.exp.default', 'aten.add.Tensor', 'aten.sum.default']
    >>> found(torch.ones(3))
    tensor(11.1548)
    """
    if isinstance(f, nn.Module):
        own = parameters(f)
        run = Recorded(partial(call, f), (own, *args), kwargs, differentiates=False)
        return Trace(run, type(f).__name__, [*own, *_labels((args, kwargs))])
    return Trace(
        Recorded(f, args, kwargs, differentiates=False),
        _name(f) if _name(f) != "<lambda>" else "program",
        _labels((args, kwargs)),
    )


def parameters(module: nn.Module) -> dict[str, Tensor]:
    """The parameters of a module by name, each once though it may be used twice."""
    if any(isinstance(value, UninitializedParameter) for value in module.parameters()):
        raise WonderlandError(
            "The module has lazy layers whose shapes are not known yet: call it once on data, then take its parameters."
        )
    return {name: value.detach() for name, value in module.named_parameters()}


def call(module: nn.Module, own: dict[str, Tensor], *args: Any, **kwargs: Any) -> Any:
    """A module called with other tensors in the place of its parameters: a function of them, to differentiate.

    >>> layer = nn.Linear(2, 1)
    >>> call(layer, {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}, torch.ones(2))
    tensor([2.])
    """
    with swapped(module, own), ExitStack() as stack:
        for recorder in ACTIVE:
            stack.enter_context(named(module, recorder))
        return module(*args, **kwargs)


@contextmanager
def swapped(module: nn.Module, own: dict[str, Tensor]) -> Iterator[None]:
    """Put tensors in the place of parameters, tied ones everywhere, and the parameters back at the end."""
    known = dict(module.named_parameters())
    for name in own:
        if name not in known:
            raise WonderlandError(f"{type(module).__name__} has no parameter {name!r}.")
    new = {id(known[name]): tensor for name, tensor in own.items()}
    kept: list[tuple[nn.Module, str, Any]] = []
    try:
        for one in module.modules():
            for name, value in one._parameters.items():
                if value is not None and id(value) in new:
                    kept.append((one, name, value))
        for one, name, value in kept:
            one._parameters[name] = new[id(value)]  # pyright: ignore[reportArgumentType]
        yield
    finally:
        for one, name, value in kept:
            one._parameters[name] = value


def laid(tensor: Tensor, stride: tuple[int, ...]) -> Tensor:
    """A tensor with these strides, copied if it has others."""
    if tensor.stride() == stride and not tensor.storage_offset():
        return tensor
    return torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device).copy_(tensor)


def _halves(found: list[Any], count: int) -> tuple[list[Any], list[Any]]:
    return found[:count], found[count:]


def _told(entry: Any) -> str:
    return "a tensor" if isinstance(entry, Tensor) else repr(entry)


def _labels(tree: Any) -> list[str]:
    """Names for the tensors among arguments: keywords as they are, others by their place."""
    args, kwargs = tree
    found: list[str] = []

    def walk(entry: Any, label: str) -> None:
        if isinstance(entry, Tensor):
            found.append(label)
        elif isinstance(entry, dict):
            for key, one in entry.items():
                walk(one, str(key))
        elif isinstance(entry, list | tuple):
            for number, one in enumerate(entry):
                walk(one, f"{label}_{number}")

    for number, entry in enumerate(args):
        walk(entry, f"x{number}" if len(args) > 1 else "x")
    for key, entry in kwargs.items():
        walk(entry, key)
    return found


def _tidy(steps: list[Step]) -> tuple[list[Step], dict[int, Value]]:
    """The steps without those that give what they were given: views of the same shape, detaching what is constant."""
    same: dict[int, Value] = {}
    kept = []
    for step in steps:
        if same and any(id(value) in same for value in step.inputs):
            change = lambda value: same.get(id(value), value)  # noqa: E731
            step = replace(step, args=over(step.args, Value, change), kwargs=over(step.kwargs, Value, change))
            for value in step.outputs:
                value.made_by = weakref.ref(step)
        name, value = cost.packet(step.target), step.result
        idle = (
            name in ("view", "alias", "expand", "_unsafe_view")
            and isinstance(value, Value)
            and value.shape == step.inputs[0].shape
            and value.dtype == step.inputs[0].dtype
        )
        if idle or (name in ("detach", "lift_fresh") and not step.inputs[0].depends):
            same[id(value)] = step.inputs[0]
        else:
            kept.append(step)
    return kept, same


def _needed(steps: list[Step], outputs: list[Value]) -> list[Step]:
    """The steps that the outputs depend on, in their order."""
    wanted = {id(value) for value in outputs}
    kept = []
    for step in reversed(steps):
        if any(id(value) in wanted for value in step.outputs):
            kept.append(step)
            wanted.update(id(value) for value in step.inputs)
    return kept[::-1]
