"""The examination: one training step as a trace, each primitive with the size of its numbers and of its gradients."""

import inspect
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from wonderland.autodiff.cost import packet
from wonderland.autodiff.node import Step, Value
from wonderland.autodiff.recorder import Recorder
from wonderland.autodiff.recording import recording
from wonderland.autodiff.tape import active, reverse
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.patient import Patient

PRODUCTS = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "convolution", "linear", "matmul"}
)  # fmt: skip
BENDS = frozenset(
    {"sigmoid", "tanh", "relu", "gelu", "silu", "elu", "leaky_relu", "softplus", "hardtanh", "hardsigmoid", "hardswish", "mish", "log_sigmoid_forward", "clamp_min", "clamp", "threshold", "relu6", "celu", "selu"}
)  # fmt: skip
_OWN = os.path.dirname(__file__) + os.sep


@dataclass(eq=False)
class Moment:
    """One step of the program as the doctor sees it.

    `weights` are the parameters that its other arguments are made of, for a step in which weights meet data; `depth` counts
    how many of those lie between the batch and its output. `passed` is the norm of the gradient that leaves through `source`,
    its data argument, over that of the gradient that came in.
    """

    index: int
    step: Step
    depth: int = 0
    axis: int = -1
    weights: frozenset[str] = frozenset()
    source: Value | None = None
    passed: float | None = None

    @property
    def name(self) -> str:
        """The primitive without namespace and overload."""
        return packet(self.step.target) or self.step.name

    @property
    def out(self) -> Value:
        """The first value that it gives."""
        return self.step.outputs[0]

    @cached_property
    def gain(self) -> float | None:
        """Size of the output over size of the data that went in."""
        if self.source is None:
            return None
        before, after = rms(self.source.now), rms(self.out.now)
        return after / before if before else None


class Exam:
    """A recorded step: moments in order, what each value depends on, gradients of all parameters."""

    def __init__(self, patient: Patient, home: str):
        self.patient, self.home, self.model = patient, home, patient.model
        named = dict(self.model.named_parameters())
        self.trainable = {name for name, one in named.items() if one.requires_grad}
        for number, module in enumerate(patient.outside):
            for name, one in module.named_parameters():
                if one.requires_grad and not any(one is known for known in named.values()):
                    named[f"(loss){number or ''}.{name}"] = one
        self.outside = {name for name, one in named.items() if name.startswith("(loss)") and one.requires_grad}
        self.numbers = {name: one.detach() for name, one in named.items()}
        self.module_names = {id(module): name for name, module in self.model.named_modules()}
        for one in (
            *self.model.modules(),
            *patient.outside,
            *((patient.loss,) if isinstance(patient.loss, nn.Module) else ()),
        ):
            one.requires_grad_(False)
        self.recorder: Recorder
        with recording(list(named.values()), self.model) as self.recorder:
            self.parameters = dict(zip(named, self.recorder.inputs, strict=True))
            self.batch = {id(self.recorder.value(tensor)): tensor for tensor in patient.tensors()}
            self.loss = self.recorder.value(patient.run())
            self.first = len(self.recorder.steps)
            self.output = patient.answer
            self.answer = None if self.output is None else self.recorder.value(self.output)
            self.targets = None if patient.given is None else patient.given.targets
            self.kept = self._attributes()
            self.second = self._second()

    def _second(self) -> Value | None:
        try:
            return self.recorder.value(self.patient.run())
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
            return None

    def _attributes(self) -> dict[int, tuple[str, str]]:
        """Values that modules hold on to after the first pass, by id: path and attribute."""
        return {
            id(value): (path, name)
            for path, module in self.model.named_modules()
            for name, entry in vars(module).items()
            if not name.startswith("_")
            for tensor in (entry if isinstance(entry, tuple | list) else [entry])
            if isinstance(tensor, Tensor) and (value := self.recorder.seen(tensor)) is not None
        }

    @property
    def steps(self) -> Sequence[Step]:
        """The steps of the first forward pass and its loss."""
        return self.recorder.steps[: self.first]

    @property
    def number(self) -> float:
        """The loss."""
        assert self.loss.now is not None
        return float(self.loss.now)

    @cached_property
    def alive(self) -> set[int]:
        """The values, by id, through which gradients of parameters in training flow."""
        return active(self.recorder.steps, [self.parameters[name] for name in (*self.trainable, *self.outside)])

    @cached_property
    def made_of(self) -> dict[int, tuple[frozenset[str], bool]]:
        """For each value: the parameters it is computed from, and whether the batch has a part in it."""
        found = {id(value): (frozenset([name]), False) for name, value in self.parameters.items()}
        nothing: tuple[frozenset[str], bool] = (frozenset(), False)
        for step in self.recorder.steps:
            parts = [found.get(id(value), (frozenset(), self._fed(value))) for value in step.inputs]
            data = any(part[1] for part in parts)
            # What data has a part in needs no list of all its weights: it would grow with depth.
            whole = (
                nothing
                if not parts
                else (frozenset().union(*(part[0] for part in parts)) if not data else frozenset(), data)
            )
            for value in step.outputs:
                found[id(value)] = whole
        return found

    def _fed(self, value: Value) -> bool:
        return id(value) in self.batch

    @cached_property
    def moments(self) -> list[Moment]:
        """Every step with its depth, its weights and the data that it works on."""
        depth: dict[int, int] = {}
        axis: dict[int, int] = {}
        found = []
        for index, step in enumerate(self.steps):
            if not step.outputs:
                continue
            moment = Moment(index, step)
            data = [value for value in step.inputs if self.fed(value)]
            moment.depth = max((depth.get(id(value), 0) for value in data), default=0)
            if data:
                moment.source = max(data, key=lambda value: (value.smooth, value.numel))
                inherited = axis.get(id(moment.source), -1)
                moment.axis = inherited if moment.source.shape == moment.out.shape else -1
            weights = self._weights(step, data)
            if weights and self._meets(moment):
                moment.weights, moment.depth = weights, moment.depth + 1
                moment.axis = 1 if moment.name == "convolution" else -1
            for value in step.outputs:
                depth[id(value)], axis[id(value)] = moment.depth, moment.axis
            found.append(moment)
        self._sweep({moment.index: moment for moment in found})
        return found

    def fed(self, value: Value) -> bool:
        """Whether the batch has a part in a value."""
        return self.made_of.get(id(value), (frozenset(), self._fed(value)))[1]

    def _weights(self, step: Step, data: list[Value]) -> frozenset[str]:
        if not data:
            return frozenset()
        others = [self.made_of.get(id(value)) for value in step.inputs if value.smooth and len(value.shape) > 1]
        return frozenset().union(*(part[0] for part in others if part is not None and not part[1]))

    def _meets(self, moment: Moment) -> bool:
        return moment.name in PRODUCTS or moment.name == "embedding" or not packet(moment.step.target)

    @cached_property
    def layers(self) -> list[Moment]:
        """The steps in which weights meet data of floating point numbers, in the order of running."""
        return [
            m for m in self.moments if m.weights and m.source is not None and m.source.smooth and m.name != "embedding"
        ]

    @cached_property
    def bends(self) -> list[Moment]:
        """The steps that are activation functions of data."""
        return [m for m in self.moments if m.name in BENDS and m.source is not None and id(m.out) in self.alive]

    def _sweep(self, moments: dict[int, Moment]) -> None:
        """The reverse pass: gradients of parameters, norms of those of all other values, the first that is not finite."""
        slopes: dict[int, Tensor] = {}
        self._norms: dict[int, float] = {}
        self.sick_reverse: Step | None = None
        self._slopes = slopes
        if id(self.loss) not in self.alive:
            return
        assert self.loss.now is not None
        slopes[id(self.loss)] = torch.ones_like(self.loss.now)
        kept = {id(value) for value in self.parameters.values()}
        with torch.no_grad():
            for index in range(self.first - 1, -1, -1):
                step = self.recorder.steps[index]
                given = [slopes.get(id(value)) for value in step.outputs]
                if all(slope is None for slope in given):
                    continue
                for value, slope in zip(step.outputs, given, strict=True):
                    if slope is not None:
                        self._norms[id(value)] = norm(slope)
                        if id(value) not in kept:
                            del slopes[id(value)]
                if not any(id(value) in self.alive for value in step.inputs):
                    continue
                pairs = reverse(step, given, self.alive)
                self._note(step, given, pairs, moments.get(index))
                for value, slope in pairs:
                    had = slopes.get(id(value))
                    slopes[id(value)] = slope if had is None else had + slope

    def _note(self, step: Step, given: list[Tensor | None], pairs: list[Any], moment: Moment | None) -> None:
        came = sum(norm(slope) ** 2 for slope in given if slope is not None) ** 0.5
        fine = came < float("inf")
        for value, slope in pairs:
            went = norm(slope)
            if fine and self.sick_reverse is None and not went < float("inf"):
                self.sick_reverse = step
            if moment is not None and value is moment.source and came > 0:
                moment.passed = went / came

    @cached_property
    def gradients(self) -> dict[str, Tensor | None]:
        """The gradient of each parameter in training, None where no gradient flows to it."""
        assert self.moments is not None
        return {
            name: self._slopes.get(id(self.parameters[name]))
            for name in (*sorted(self.trainable), *sorted(self.outside))
        }

    def slope(self, value: Value) -> float | None:
        """The norm of the loss's gradient by a value, None where none flows."""
        assert self.moments is not None
        return self._norms.get(id(value))

    def line(self, step: Step | None) -> str:
        """The user's source line of a step: the doctor's own call counts as the line that called the doctor."""
        if step is None or not step.line or step.line.startswith(_OWN):
            return self.home
        return step.line

    def defined(self, name: str) -> str:
        """The line where a parameter, or the module that owns it, is assigned in its class."""
        path = name.split(".")
        for cut in range(len(path) - 1, -1, -1):
            try:
                owner: Any = self.model.get_submodule(".".join(path[:cut]))
            except AttributeError:
                continue
            for kind in type(owner).__mro__:
                if kind.__module__.startswith("torch."):
                    break
                try:
                    lines, start = inspect.getsourcelines(kind)
                    file = inspect.getsourcefile(kind)
                except (OSError, TypeError):
                    continue
                for offset, text in enumerate(lines):
                    if re.search(rf"\b\w+\.{re.escape(path[cut])}\s*(:[^=]+)?=[^=]", text):
                        return f"{os.path.abspath(file)}:{start + offset}" if file else self.home
        return self.home

    def place(self, name: str) -> str:
        """The path of the module that owns a parameter."""
        return name.rpartition(".")[0]

    def kind(self, path: str) -> str:
        """The class of a module by its path."""
        try:
            return type(self.model.get_submodule(path)).__name__
        except AttributeError:
            return ""

    def finding(self, illness: str, step: Step, number: float, words: str, remedy: str) -> Finding:
        """A finding at the site of a step."""
        return Finding(illness, step.module, self.line(step), number, words, remedy)


def norm(tensor: Tensor) -> float:
    """The Euclidean norm, in double precision."""
    if not tensor.numel():
        return 0.0
    return float(torch.linalg.vector_norm(wide(tensor)))


def wide(tensor: Tensor) -> Tensor:
    """A tensor in double precision."""
    tensor = tensor.detach()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def rms(tensor: Tensor | None) -> float:
    """The root of the mean square."""
    return 0.0 if tensor is None or not tensor.numel() else norm(tensor) / tensor.numel() ** 0.5


def finite(tensor: Tensor | None) -> bool:
    """Whether all numbers are finite."""
    return (
        tensor is None or not (tensor.is_floating_point() or tensor.is_complex()) or bool(torch.isfinite(tensor).all())
    )


def signal(tensor: Tensor | None, axis: int) -> float:
    """How much examples and positions differ: the deviation of each unit over all of them, root of the mean square."""
    if tensor is None or not tensor.is_floating_point() or not tensor.dim():
        return 0.0
    rows = units(tensor, axis)
    return float(wide(rows).var(0, correction=0).mean().sqrt()) if len(rows) > 1 else rms(tensor)


def units(tensor: Tensor, axis: int) -> Tensor:
    """A tensor as (positions, units)."""
    if not tensor.dim():
        return tensor.reshape(1, 1)
    return tensor.detach().movedim(axis, -1).reshape(-1, tensor.shape[axis])
