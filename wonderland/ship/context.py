"""context.safetensors: a bounded sample of calibration rows that a run keeps, to compare new rows with."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from wonderland.core import WonderlandError, inside, load_tensors, permutation, read_header, save_tensors, sha256
from wonderland.data.examples import RowExamples
from wonderland.tasks import Classification, Regression, View
from wonderland.trust.conformal import misfit
from wonderland.trust.label_shift import LabelScores, LabelShift
from wonderland.trust.reference import ROWS, Reference
from wonderland.trust.shift import Shift, compare, estimate_labels

CONTEXT = "context.safetensors"
LARGEST = 64 << 20  # bytes
ONE_ANSWER = (Classification, Regression)
MADE_FROM = ("model.safetensors", "preprocess.json")


def reference_of(task: Any, encoder: Any, trust: Any, view: View) -> Reference | None:
    """The reference of a finished model, from the rows it was calibrated on; None for tasks without predictions of rows."""
    if not isinstance(task, ONE_ANSWER) or not isinstance(view.examples, RowExamples):
        return None
    part = np.asarray(view.part)
    rows = part[np.sort(permutation(0, 0, len(part))[:ROWS])]
    chosen = View(view.model, view.examples, rows, view.ensemble, view.folds, dataset=view.dataset)
    y = np.ascontiguousarray(chosen.targets())
    return Reference.of(encoder.traits(view.dataset, rows), task.compared(chosen, trust), y, task.classes, len(part))


def save_context(folder: Path, reference: Reference | None) -> None:
    """Write the reference of a run, unless the file was made from the same model; none removes the file."""
    if reference is None:
        (folder / CONTEXT).unlink(missing_ok=True)
        return
    meta = {"inputs": digests(folder), "reference": reference.to_json()}
    save_tensors(folder / CONTEXT, reference.tensors(), meta)


def is_current(folder: Path) -> bool:
    """Whether the context was made from the current model."""
    try:
        return (folder / CONTEXT).exists() and load_tensors(folder / CONTEXT)[1].get("inputs") == digests(folder)
    except WonderlandError:
        return False


def digests(folder: Path) -> dict[str, str]:
    """The digests of the files that a context is made from."""
    return {name: sha256(folder / name) for name in MADE_FROM}


def read_reference(run: Any) -> Reference:
    """The reference of a run, checked."""
    if not isinstance(run.task, ONE_ANSWER):
        raise WonderlandError(
            f"Shift is tested where each row has one class or number, and the run in {run.folder} is a {run.task.name} run."
        )
    path = inside(run.folder, CONTEXT)
    if not path.exists():
        raise WonderlandError(
            f"The run in {run.folder} keeps no rows to compare with: it has no {CONTEXT}, which fit writes for tables, images "
            "and texts. Fit it again."
        )
    read_header(path)
    if path.stat().st_size > LARGEST:
        raise WonderlandError(f"{path} is larger than {LARGEST >> 20} MiB, the limit for this kind of file.")
    tensors, meta = load_tensors(path)
    if meta.get("inputs") != digests(run.folder):
        raise WonderlandError(f"{path} was made for another model: fit the run again.")
    reference = Reference.read(meta.get("reference"), tensors)
    if (None if reference.classes is None else list(reference.classes)) != run.classes:
        raise WonderlandError(f"{path} has other classes than the run: the two do not belong together.")
    return reference


def shift_of(run: Any, view: View, dataset: Any, level: float) -> Shift:
    """Compare a dataset with the reference of a run."""
    reference = read_reference(run)
    rows = np.sort(permutation(0, 0, len(dataset))[:ROWS])
    drawn = View(view.model, view.examples, rows, view.ensemble, dataset=dataset)
    return compare(reference, run.encoder.traits(dataset, rows), run.task.compared(drawn, run.trust), level=level,
                   rows=len(dataset))  # fmt: skip


def corrected_for_labels(run: Any, view: View, method: str) -> tuple[Any, LabelShift]:
    """The calibration of a run, corrected for the shares of classes among the rows of a view, which are estimated without labels.

    Sets are calibrated again with the rows that the run keeps, each by the new share of its class; those calibrated for each
    class hold as they are.
    """
    if run.classes is None:
        raise WonderlandError("label_shift is for classification: this run predicts numbers.")
    reference = read_reference(run)
    estimate = estimate_labels(reference, run.task.compared(view, run.trust), method)
    options = run.trust.options
    if options is not None and options.sets:
        return replace(run.trust, label_weights=estimate.weights), estimate
    moved = np.log(np.maximum(reference.predictions, 1e-12)) + np.log(np.maximum(estimate.weights, 1e-12))
    codes = reference.y.astype(np.int64)
    scores = misfit(moved)[np.arange(len(codes)), codes]
    calibrated = LabelScores(scores, codes, estimate.weights)
    return replace(run.trust, label_weights=estimate.weights, label_scores=calibrated), estimate
