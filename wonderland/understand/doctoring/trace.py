"""One training step as a trace: every operator with its values, their dependencies and their gradients."""

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
from wonderland.understand.doctoring.training_copy import TrainingCopy

MATRIX_PRODUCTS = frozenset(
    {"mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "convolution", "linear", "matmul"}
)  # fmt: skip
ACTIVATIONS = frozenset(
    {"sigmoid", "tanh", "relu", "gelu", "silu", "elu", "leaky_relu", "softplus", "hardtanh", "hardsigmoid", "hardswish", "mish", "log_sigmoid_forward", "clamp_min", "clamp", "threshold", "relu6", "celu", "selu"}
)  # fmt: skip
_OWN = os.path.dirname(__file__) + os.sep


@dataclass(eq=False)
class TracedOp:
    """One operator of the traced step.

    `source` is the input that depends on the batch, `axis` the axis of the units in its output. `weights` are the names of the
    parameters that it is multiplied with (empty for operators without weights), and `depth` is the number of operators with
    weights between the batch and its output. `gradient_gain` is the norm of the gradient with respect to `source` divided by
    that with respect to the output.
    """

    index: int
    step: Step
    depth: int = 0
    axis: int = -1
    weights: frozenset[str] = frozenset()
    source: Value | None = None
    gradient_gain: float | None = None

    @property
    def name(self) -> str:
        """The primitive without namespace and overload."""
        return packet(self.step.target) or self.step.name

    @property
    def out(self) -> Value:
        """The first output."""
        return self.step.outputs[0]

    @cached_property
    def gain(self) -> float | None:
        """RMS of the output divided by RMS of `source`."""
        if self.source is None:
            return None
        before, after = rms(self.source.now), rms(self.out.now)
        return after / before if before else None


class StepTrace:
    """A traced training step: operators in order, what each value depends on, gradients of all parameters.

    The model runs twice on the batch, so that state carried from the first pass into the second one can be seen; `steps` are
    those of the first pass. `loss_parameters` are parameters that belong to the loss and not to the model.
    """

    def __init__(self, training: TrainingCopy, default_line: str):
        self.training, self.default_line, self.model = training, default_line, training.model
        named = dict(self.model.named_parameters())
        self.trainable = {name for name, parameter in named.items() if parameter.requires_grad}
        for number, module in enumerate(training.loss_modules):
            for name, parameter in module.named_parameters():
                if parameter.requires_grad and not any(parameter is known for known in named.values()):
                    named[f"(loss){number or ''}.{name}"] = parameter
        self.loss_parameters = {
            name for name, parameter in named.items() if name.startswith("(loss)") and parameter.requires_grad
        }
        self.parameter_values = {name: parameter.detach() for name, parameter in named.items()}
        self.module_names = {id(module): name for name, module in self.model.named_modules()}
        for module in (
            *self.model.modules(),
            *training.loss_modules,
            *((training.loss,) if isinstance(training.loss, nn.Module) else ()),
        ):
            module.requires_grad_(False)
        self.recorder: Recorder
        with recording(list(named.values()), self.model) as self.recorder:
            self.parameters = dict(zip(named, self.recorder.inputs, strict=True))
            self.batch = {id(self.recorder.value(tensor)): tensor for tensor in training.tensors()}
            self.loss = self.recorder.value(training.run())
            self.first_pass = len(self.recorder.steps)
            self.output = training.output_tensor
            self.output_value = None if self.output is None else self.recorder.value(self.output)
            self.targets = None if training.arguments is None else training.arguments.targets
            self.attributes = self._attributes()
            self.second_loss = self._second_pass()

    def _second_pass(self) -> Value | None:
        try:
            return self.recorder.value(self.training.run())
        except (RuntimeError, ValueError, IndexError, TypeError, AttributeError):
            return None

    def _attributes(self) -> dict[int, tuple[str, str]]:
        """Values that modules keep as attributes after the first pass: {id: (module path, attribute)}."""
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
        return self.recorder.steps[: self.first_pass]

    @property
    def loss_value(self) -> float:
        """The loss as a number."""
        assert self.loss.now is not None
        return float(self.loss.now)

    @cached_property
    def differentiable(self) -> set[int]:
        """Ids of the values that depend differentiably on trainable parameters."""
        return active(self.recorder.steps, [self.parameters[name] for name in (*self.trainable, *self.loss_parameters)])

    @cached_property
    def dependencies(self) -> dict[int, tuple[frozenset[str], bool]]:
        """For each value, by id: the parameters it is computed from, and whether it depends on the batch."""
        known = {id(value): (frozenset([name]), False) for name, value in self.parameters.items()}
        constant: tuple[frozenset[str], bool] = (frozenset(), False)
        for step in self.recorder.steps:
            inputs = [known.get(id(value), (frozenset(), self._in_batch(value))) for value in step.inputs]
            data = any(from_batch for _, from_batch in inputs)
            # A value that depends on the batch gets no list of parameters: the list would grow with depth.
            depends = (
                constant
                if not inputs
                else (frozenset().union(*(names for names, _ in inputs)) if not data else frozenset(), data)
            )
            for value in step.outputs:
                known[id(value)] = depends
        return known

    def _in_batch(self, value: Value) -> bool:
        return id(value) in self.batch

    @cached_property
    def ops(self) -> list[TracedOp]:
        """Every operator with its depth, its weights and its data input."""
        depth: dict[int, int] = {}
        axis: dict[int, int] = {}
        ops = []
        for index, step in enumerate(self.steps):
            if not step.outputs:
                continue
            op = TracedOp(index, step)
            data = [value for value in step.inputs if self.depends_on_batch(value)]
            op.depth = max((depth.get(id(value), 0) for value in data), default=0)
            if data:
                op.source = max(data, key=lambda value: (value.smooth, value.numel))
                inherited = axis.get(id(op.source), -1)
                op.axis = inherited if op.source.shape == op.out.shape else -1
            weights = self._weights(step, data)
            if weights and self._takes_weights(op):
                op.weights, op.depth = weights, op.depth + 1
                op.axis = 1 if op.name == "convolution" else -1
            for value in step.outputs:
                depth[id(value)], axis[id(value)] = op.depth, op.axis
            ops.append(op)
        self._backward({op.index: op for op in ops})
        return ops

    def depends_on_batch(self, value: Value) -> bool:
        """Whether a value depends on the batch."""
        return self.dependencies.get(id(value), (frozenset(), self._in_batch(value)))[1]

    def _weights(self, step: Step, data: list[Value]) -> frozenset[str]:
        if not data:
            return frozenset()
        dependencies = [
            self.dependencies.get(id(value)) for value in step.inputs if value.smooth and len(value.shape) > 1
        ]
        return frozenset().union(*(entry[0] for entry in dependencies if entry is not None and not entry[1]))

    def _takes_weights(self, op: TracedOp) -> bool:
        return op.name in MATRIX_PRODUCTS or op.name == "embedding" or not packet(op.step.target)

    @cached_property
    def layers(self) -> list[TracedOp]:
        """The operators that apply weights to floating point data, in the order of execution."""
        return [
            op
            for op in self.ops
            if op.weights and op.source is not None and op.source.smooth and op.name != "embedding"
        ]

    @cached_property
    def activations(self) -> list[TracedOp]:
        """The activation functions on differentiable data."""
        return [
            op
            for op in self.ops
            if op.name in ACTIVATIONS and op.source is not None and id(op.out) in self.differentiable
        ]

    def _backward(self, ops: dict[int, TracedOp]) -> None:
        """The backward pass: gradients of parameters, gradient norms of all other values, the first operator with a non-finite one."""
        gradients: dict[int, Tensor] = {}
        self._gradient_norms: dict[int, float] = {}
        self.nonfinite_backward: Step | None = None
        self._gradients = gradients
        if id(self.loss) not in self.differentiable:
            return
        assert self.loss.now is not None
        gradients[id(self.loss)] = torch.ones_like(self.loss.now)
        parameters = {id(value) for value in self.parameters.values()}
        with torch.no_grad():
            for index in range(self.first_pass - 1, -1, -1):
                step = self.recorder.steps[index]
                incoming = [gradients.get(id(value)) for value in step.outputs]
                if all(gradient is None for gradient in incoming):
                    continue
                for value, gradient in zip(step.outputs, incoming, strict=True):
                    if gradient is not None:
                        self._gradient_norms[id(value)] = norm(gradient)
                        if id(value) not in parameters:
                            del gradients[id(value)]
                if not any(id(value) in self.differentiable for value in step.inputs):
                    continue
                pairs = reverse(step, incoming, self.differentiable)
                self._record_gradients(step, incoming, pairs, ops.get(index))
                for value, gradient in pairs:
                    total = gradients.get(id(value))
                    gradients[id(value)] = gradient if total is None else total + gradient

    def _record_gradients(
        self, step: Step, incoming: list[Tensor | None], pairs: list[Any], op: TracedOp | None
    ) -> None:
        norm_in = sum(norm(gradient) ** 2 for gradient in incoming if gradient is not None) ** 0.5
        finite_in = norm_in < float("inf")
        for value, gradient in pairs:
            norm_out = norm(gradient)
            if finite_in and self.nonfinite_backward is None and not norm_out < float("inf"):
                self.nonfinite_backward = step
            if op is not None and value is op.source and norm_in > 0:
                op.gradient_gain = norm_out / norm_in

    @cached_property
    def gradients(self) -> dict[str, Tensor | None]:
        """The gradient of each trainable parameter, None where no gradient reaches it."""
        assert self.ops is not None
        return {
            name: self._gradients.get(id(self.parameters[name]))
            for name in (*sorted(self.trainable), *sorted(self.loss_parameters))
        }

    def gradient_norm(self, value: Value) -> float | None:
        """The norm of the gradient with respect to a value, None where no gradient reaches it."""
        assert self.ops is not None
        return self._gradient_norms.get(id(value))

    def line(self, step: Step | None) -> str:
        """The source line of a step; for calls made by the doctor itself, the line that called the doctor."""
        if step is None or not step.line or step.line.startswith(_OWN):
            return self.default_line
        return step.line

    def defined(self, name: str) -> str:
        """The source line where a parameter, or the module that owns it, is assigned in its class."""
        path = name.split(".")
        for length in range(len(path) - 1, -1, -1):
            try:
                owner: Any = self.model.get_submodule(".".join(path[:length]))
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
                    if re.search(rf"\b\w+\.{re.escape(path[length])}\s*(:[^=]+)?=[^=]", text):
                        return f"{os.path.abspath(file)}:{start + offset}" if file else self.default_line
        return self.default_line

    def module_of(self, name: str) -> str:
        """The path of the module that owns a parameter."""
        return name.rpartition(".")[0]

    def class_name(self, path: str) -> str:
        """The class of a module by its path."""
        try:
            return type(self.model.get_submodule(path)).__name__
        except AttributeError:
            return ""

    def finding(self, problem: str, step: Step, number: float, measured: str, remedy: str) -> Finding:
        """A finding at the location of a step."""
        return Finding(problem, step.module, self.line(step), number, measured, remedy)


def norm(tensor: Tensor) -> float:
    """The Euclidean norm, in double precision."""
    if not tensor.numel():
        return 0.0
    return float(torch.linalg.vector_norm(to_double(tensor)))


def to_double(tensor: Tensor) -> Tensor:
    """A tensor in double precision."""
    tensor = tensor.detach()
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def rms(tensor: Tensor | None) -> float:
    """Root mean square."""
    return 0.0 if tensor is None or not tensor.numel() else norm(tensor) / tensor.numel() ** 0.5


def is_finite(tensor: Tensor | None) -> bool:
    """Whether all values are finite; True for None and for integers."""
    return (
        tensor is None or not (tensor.is_floating_point() or tensor.is_complex()) or bool(torch.isfinite(tensor).all())
    )


def spread(tensor: Tensor | None, axis: int) -> float:
    """How much examples differ: the standard deviation of each unit over examples and positions, root mean square over units."""
    if tensor is None or not tensor.is_floating_point() or not tensor.dim():
        return 0.0
    rows = by_unit(tensor, axis)
    return float(to_double(rows).var(0, correction=0).mean().sqrt()) if len(rows) > 1 else rms(tensor)


def by_unit(tensor: Tensor, axis: int) -> Tensor:
    """A tensor as (positions, units)."""
    if not tensor.dim():
        return tensor.reshape(1, 1)
    return tensor.detach().movedim(axis, -1).reshape(-1, tensor.shape[axis])
