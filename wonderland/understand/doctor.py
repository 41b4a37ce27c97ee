"""doctor: run one training step of a model, and report problems with their layer, source line and remedy."""

import os
import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.utils._pytree import tree_leaves

from wonderland.core import WonderlandError
from wonderland.understand.doctoring.batch_axis import batch_axis
from wonderland.understand.doctoring.dead_units import dead_units
from wonderland.understand.doctoring.finding import Diagnosis, Finding, LayerStatistics
from wonderland.understand.doctoring.gradient_flow import frozen_layers, trained_targets, without_gradient
from wonderland.understand.doctoring.inputs import SYMPTOMS, inputs
from wonderland.understand.doctoring.labels import ignored_targets, index_error, shifted_labels
from wonderland.understand.doctoring.loss_inputs import loss_inputs, target_range
from wonderland.understand.doctoring.modes import modes
from wonderland.understand.doctoring.nonfinite import nonfinite
from wonderland.understand.doctoring.propagation import propagation
from wonderland.understand.doctoring.raised import raised
from wonderland.understand.doctoring.recurrence import recurrence
from wonderland.understand.doctoring.registration import unregistered
from wonderland.understand.doctoring.retained_graph import retained_graph
from wonderland.understand.doctoring.sequences import sequences
from wonderland.understand.doctoring.statistics import layer_statistics
from wonderland.understand.doctoring.step_function import StepLog, run_step, step_findings
from wonderland.understand.doctoring.structure import missing_activation
from wonderland.understand.doctoring.symmetry import symmetry
from wonderland.understand.doctoring.trace import StepTrace, is_finite
from wonderland.understand.doctoring.training_copy import TrainingCopy, preserved_random_state
from wonderland.understand.doctoring.training_steps import (
    autograd_gradients,
    learning_rate,
    loss_reduction,
    weight_decay,
)

__all__ = ["Diagnosis", "Finding", "LayerStatistics", "doctor"]

_FOLDER = os.path.dirname(__file__) + os.sep


def doctor(
    model: nn.Module,
    batch: Any,
    loss: Any = None,
    *,
    optimizer: Any = None,
    lr: float | None = None,
    steps: int = 8,
    line: str | None = None,
    step: Callable[..., Any] | None = None,
) -> Diagnosis:
    """Run training steps on a copy of a model, and report problems with their layer, source line and remedy.

    `batch` is the batch of one training step: a tensor, a pair (inputs, targets), several inputs with the targets last, or a
    dict. `loss` is a function of (output, targets), of (model, batch), or a task; without it the model's own loss is used
    (a scalar output, or `.loss`), else cross-entropy for integer targets and squared error for floats. With `optimizer`, an
    optimizer of this model or a class, or with `lr` (for Adam), the learning rate is tested over `steps` steps.

    `step` is the function that makes one training step. It is called on copies, and takes model, batch (or x and y), optimizer
    and loss by these names, as many of them as it needs; a function that refers to your model and optimizer works too.

    The model, its gradients, its mode and the random states are not changed. `line` is reported for operators without a source
    line; by default it is the line that called `doctor`.

    >>> import torch
    >>> tower = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(16, 16), nn.Sigmoid())))
    >>> diagnosis = doctor(tower, (torch.randn(32, 16), torch.rand(32, 16)))
    >>> [finding.problem for finding in diagnosis.findings], diagnosis.findings[0].module
    (['vanishing gradients'], '1')
    """
    if not isinstance(model, nn.Module):
        raise WonderlandError(f"doctor takes a torch module, not a {type(model).__name__}.")
    if any(isinstance(parameter, UninitializedParameter) for parameter in model.parameters()):
        raise WonderlandError("The model has lazy layers whose shapes are not known yet. Call it once on data first.")
    default_line = _caller() if line is None else line
    if not any(parameter.requires_grad for parameter in model.parameters()):
        with preserved_random_state():
            hidden = list(unregistered(TrainingCopy(model, batch, loss), default_line))
        if hidden:
            return Diagnosis(type(model).__name__, None, hidden)
        raise WonderlandError(f"{type(model).__name__} has no trainable parameter, so there is nothing to check.")
    if steps < 2:
        raise WonderlandError(f"The check of the learning rate needs at least 2 steps, not {steps}.")
    if any(isinstance(leaf, Tensor) and leaf.dim() and not len(leaf) for leaf in tree_leaves(batch)):
        raise WonderlandError("The batch has a tensor without rows: give at least one example.")
    if _optimized(model, optimizer) == set():
        raise WonderlandError(
            f"The optimizer has no parameter of this {type(model).__name__}: make it from model.parameters()."
        )
    with preserved_random_state():
        return _diagnose(
            model,
            lambda: TrainingCopy(model, batch, loss, optimizer, lr),
            batch,
            default_line,
            steps,
            _optimized(model, optimizer),
            None if step is None else _logged(model, batch, loss, optimizer, lr, step),
        )


def _logged(model: nn.Module, batch: Any, loss: Any, optimizer: Any, lr: float | None, step: Any) -> StepLog:
    """What a step function does with copies of model and optimizer."""
    training = TrainingCopy(model, batch, loss, optimizer, lr, step)
    assert training.step is not None
    try:
        return run_step(training, training.step)
    except WonderlandError:
        raise
    except Exception as error:
        message = (str(error).splitlines() or ["no message"])[0]
        raise WonderlandError(f"The step function fails ({type(error).__name__}: {message}).") from error


def _diagnose(
    model: nn.Module,
    new_copy: Callable[[], TrainingCopy],
    batch: Any,
    default_line: str,
    steps: int,
    optimized: set[str] | None,
    log: StepLog | None,
) -> Diagnosis:
    name = type(model).__name__
    try:
        trace = StepTrace(new_copy(), default_line)
    except WonderlandError:
        raise
    except Exception as error:
        findings = list(_explained(error, new_copy, batch, default_line))
        if findings:
            return Diagnosis(name, None, findings)
        message = (str(error).splitlines() or ["no message"])[0]
        raise WonderlandError(f"{name} does not run on this batch ({type(error).__name__}: {message}).") from error
    if id(trace.loss) not in trace.differentiable:
        findings = [*unregistered(new_copy(), default_line), *without_gradient(trace)]
        return Diagnosis(name, trace.loss_value, findings, layer_statistics(trace))
    if not is_finite(trace.loss.now) and (refused := _refused(new_copy(), default_line)):
        return Diagnosis(name, None, refused)
    if ignored := list(ignored_targets(trace.targets, trace.loss_value, default_line)):
        return Diagnosis(name, trace.loss_value, ignored, layer_statistics(trace))
    notes: list[str] = []
    findings = [*shifted_labels(trace.output, trace.targets, default_line), *retained_graph(trace, batch)]
    if is_finite(trace.loss.now):
        findings += [*inputs(trace), *batch_axis(trace, new_copy()), *sequences(trace, new_copy)]
    findings += modes(model, batch, default_line, None if log is None else log.training)
    findings += [*unregistered(new_copy(), default_line), *missing_activation(trace)]
    findings += _numerical(trace, new_copy)
    findings += [*without_gradient(trace, optimized), *frozen_layers(trace), *trained_targets(trace, optimized)]
    if is_finite(trace.loss.now) and not any(finding.problem in _NONFINITE_INPUTS for finding in findings):
        findings += [*loss_inputs(trace), *target_range(trace)]
        findings += loss_reduction(trace, new_copy, notes)
        decay = list(weight_decay(trace, new_copy()))
        findings += decay or learning_rate(trace, new_copy, steps, notes)
    if log is not None:
        findings += step_findings(log, trace, default_line)
    return Diagnosis(name, trace.loss_value, _causes(findings), layer_statistics(trace), notes)


def _refused(training: TrainingCopy, default_line: str) -> list[Finding]:
    """Findings about a loss that torch refuses outside of a trace."""
    try:
        training.run()
    except Exception as error:
        targets = None if training.arguments is None else training.arguments.targets
        return list(raised(error, training.model, targets, default_line))
    return []


def _causes(findings: list[Finding]) -> list[Finding]:
    """Findings without those that are symptoms of another: badly scaled data saturate units and break learning rates."""
    if any(finding.problem.endswith("over the batch") for finding in findings):
        findings = [finding for finding in findings if finding.problem != "nll_loss of logits"]
    if not any(finding.problem in _SCALES for finding in findings):
        return findings
    return [finding for finding in findings if finding.problem not in SYMPTOMS]


_SCALES = ("inputs of very different scale", "inputs not scaled", "targets not scaled")
_NONFINITE_INPUTS = ("non-finite weights", "non-finite data")


def _numerical(trace: StepTrace, new_copy: Callable[[], TrainingCopy]) -> list[Finding]:
    """Problems of activations and gradients, from specific to general: a check is skipped if an earlier one explains its result."""
    exploding = list(recurrence(trace))
    if exploding:
        return exploding
    try:
        finite_gradients = all(is_finite(gradient) for gradient in autograd_gradients(new_copy())[1])
    except RuntimeError:
        finite_gradients = True
    nonfinite_values = list(nonfinite(trace, finite_gradients))
    if nonfinite_values:
        return nonfinite_values
    symmetric = list(symmetry(trace))
    if symmetric:
        return symmetric
    dead = list(dead_units(trace))
    return dead if any(finding.number == 1 for finding in dead) else [*dead, *propagation(trace)]


def _explained(error: Exception, new_copy: Callable[[], TrainingCopy], batch: Any, default_line: str) -> list[Finding]:
    """Findings that explain an error: labels or tokens out of range, a batch of one, a loss that takes other inputs."""
    message = str(error)
    training = new_copy()
    try:
        training.run()
    except Exception as repeated:
        error = repeated
    targets = None if training.arguments is None else training.arguments.targets
    if known := list(raised(error, training.model, targets, default_line)):
        return known
    if not isinstance(error, IndexError) and not any(
        phrase in message for phrase in ("out of bounds", "out of range", "index")
    ):
        return []
    return list(index_error(error, training.model, training.output_tensor, batch, targets, default_line))


def _optimized(model: nn.Module, optimizer: Any) -> set[str] | None:
    """The names of the parameters that an optimizer updates, None where `optimizer` is not an optimizer."""
    if not hasattr(optimizer, "param_groups"):
        return None
    updated = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    return {name for name, parameter in model.named_parameters() if id(parameter) in updated}


def _caller() -> str:
    """The source line, outside of this folder, that called `doctor`."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame = frame.f_back
    return (
        ""
        if frame is None or frame.f_code.co_filename.startswith("<")
        else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    )
