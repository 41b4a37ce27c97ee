"""The doctor: one training step of any model, measured from inside, with a name for what is wrong, its place and its remedy."""

import os
import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter
from torch.utils._pytree import tree_leaves

from wonderland.core import WonderlandError
from wonderland.understand.doctoring.dead import dead
from wonderland.understand.doctoring.exam import Exam, finite
from wonderland.understand.doctoring.finding import Diagnosis, Finding, Vitals
from wonderland.understand.doctoring.labels import misfit, shifted
from wonderland.understand.doctoring.losses import losses
from wonderland.understand.doctoring.memory import memory
from wonderland.understand.doctoring.numbers import numbers
from wonderland.understand.doctoring.patient import Patient, untouched
from wonderland.understand.doctoring.recurrence import recurrence
from wonderland.understand.doctoring.signals import signals
from wonderland.understand.doctoring.steps import rate, reduction, slopes
from wonderland.understand.doctoring.symmetry import symmetry
from wonderland.understand.doctoring.vitals import vitals
from wonderland.understand.doctoring.wiring import frozen, teachers, unreached

__all__ = ["Diagnosis", "Finding", "Vitals", "doctor"]

_OWN = os.path.dirname(__file__) + os.sep


def doctor(
    model: nn.Module,
    batch: Any,
    loss: Any = None,
    *,
    optimizer: Any = None,
    lr: float | None = None,
    steps: int = 8,
    line: str | None = None,
) -> Diagnosis:
    """Run a few training steps on a copy of a model, measure every layer, and say what is sick, where, and what to change.

    `batch` is what one step of training sees: a tensor, a pair (inputs, targets), several inputs with the targets last, or a
    dict. `loss` is a function of (output, targets), of (model, batch), or a task; without it the model's own loss is taken
    (a scalar answer, or `.loss`), else cross-entropy for whole numbers and squared error for real ones. With `optimizer`, an
    optimizer of this model or a class, or with `lr` (Adam then), the learning rate is tried for some `steps`.

    Nothing of the user's changes: not the model, its gradients or its mode, nor any random numbers. `line` is shown for steps
    that no source line is known of; by default the line that called the doctor.

    >>> import torch
    >>> tower = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(16, 16), nn.Sigmoid())))
    >>> found = doctor(tower, (torch.randn(32, 16), torch.randn(32, 16)))
    >>> [finding.illness for finding in found.findings], found.findings[0].module
    (['vanishing gradients'], '1')
    """
    if not isinstance(model, nn.Module):
        raise WonderlandError(f"The doctor examines a torch module, not a {type(model).__name__}.")
    if any(isinstance(one, UninitializedParameter) for one in model.parameters()):
        raise WonderlandError(
            "The model has lazy layers whose shapes are not known yet. Call it once on data, then ask."
        )
    if not any(one.requires_grad for one in model.parameters()):
        raise WonderlandError(
            f"{type(model).__name__} has no parameter in training: nothing can be learned, and nothing is sick."
        )
    if steps < 2:
        raise WonderlandError(f"A learning rate shows itself in at least 2 steps, not {steps}.")
    if any(isinstance(one, Tensor) and one.dim() and not len(one) for one in tree_leaves(batch)):
        raise WonderlandError("The batch has a tensor without rows: the doctor needs examples to look at.")
    if _held(model, optimizer) == set():
        raise WonderlandError(
            f"The optimizer holds no parameter of this {type(model).__name__}: build it on the model's own."
        )
    home = _caller() if line is None else line
    with untouched():
        return _examined(
            model, lambda: Patient(model, batch, loss, optimizer, lr), batch, home, steps, _held(model, optimizer)
        )


def _examined(
    model: nn.Module, fresh: Callable[[], Patient], batch: Any, home: str, steps: int, held: set[str] | None
) -> Diagnosis:
    name = type(model).__name__
    patient = fresh()
    try:
        exam = Exam(patient, home)
    except WonderlandError:
        raise
    except Exception as error:
        found = list(_failed(error, fresh, batch, home))
        if found:
            return Diagnosis(name, None, found)
        said = (str(error).splitlines() or ["no message"])[0]
        raise WonderlandError(f"{name} does not run on this batch ({type(error).__name__}: {said}).") from error
    if id(exam.loss) not in exam.alive:
        lost = list(unreached(exam))
        return Diagnosis(name, exam.number, lost, vitals(exam))
    notes: list[str] = []
    found = [*shifted(exam.output, exam.targets, home), *memory(exam, batch)]
    found += _measured(exam, fresh)
    found += [*unreached(exam), *frozen(exam), *teachers(exam, held)]
    if finite(exam.loss.now) and not any(one.illness in _BROKEN for one in found):
        found += losses(exam)
        found += reduction(exam, fresh, notes)
        found += rate(exam, fresh, steps, notes)
    return Diagnosis(name, exam.number, found, vitals(exam), notes)


_BROKEN = ("broken weights", "broken data")


def _measured(exam: Exam, fresh: Callable[[], Patient]) -> list[Finding]:
    """Illnesses of the numbers themselves; what follows from another one is not told twice."""
    grown = list(recurrence(exam))
    if grown:
        return grown
    try:
        fine = all(finite(slope) for slope in slopes(fresh())[1])
    except RuntimeError:
        fine = True
    broken = list(numbers(exam, fine))
    if broken:
        return broken
    alike = list(symmetry(exam))
    if alike:
        return alike
    dying = list(dead(exam))
    return dying if any(one.number == 1 for one in dying) else [*dying, *signals(exam)]


def _failed(error: Exception, fresh: Callable[[], Patient], batch: Any, home: str) -> list[Finding]:
    """What an index out of range says about labels or tokens."""
    words = str(error)
    if not isinstance(error, IndexError) and not any(
        hint in words for hint in ("out of bounds", "out of range", "index")
    ):
        return []
    again = fresh()
    try:
        again.run()
    except Exception as same:
        error = same
    targets = None if again.given is None else again.given.targets
    return list(misfit(error, again.model, again.answer, batch, targets, home))


def _held(model: nn.Module, optimizer: Any) -> set[str] | None:
    """The names of the parameters that an optimizer updates, None where it is not known."""
    if not hasattr(optimizer, "param_groups"):
        return None
    held = {id(one) for group in optimizer.param_groups for one in group["params"]}
    return {name for name, one in model.named_parameters() if id(one) in held}


def _caller() -> str:
    """The line outside of this folder that asked."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_OWN):
        frame = frame.f_back
    return (
        ""
        if frame is None or frame.f_code.co_filename.startswith("<")
        else f"{frame.f_code.co_filename}:{frame.f_lineno}"
    )
