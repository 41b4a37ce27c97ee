"""Detection: boxes with classes and scores."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.ops.vision import average_precision, iou
from wonderland.tasks.box_answers import BoxAnswers, boxes_apart
from wonderland.tasks.box_files import check_json, write_boxes
from wonderland.tasks.box_pictures import draw_detections, example_pictures, precision_curves, ready_folder
from wonderland.tasks.detection_trust import (
    OVERLAP,
    THRESHOLDS,
    BoxTrust,
    best_threshold,
    fit_scores,
    missed_boxes,
    right_boxes,
    score_reliability,
)
from wonderland.tasks.task import Task
from wonderland.tasks.view import View
from wonderland.trust import check_level
from wonderland.understand.format import number, percent
from wonderland.understand.sections import Section
from wonderland.understand.sections.vision import vision_sections

LEAST, SIZE, WATCHED = 0.01, 16, 400

Detections = dict[str, Tensor]


@part
class Detection(Task):
    """Find the objects of each image: a box, a class and a score for each.

    Models are detectors with `losses(x, boxes, labels)` and `detect(x)` (`models.RetinaNet`, `TinySSD`, `FasterRCNN`). Measures are
    average precision as COCO counts it and at an IoU of one half. Scores are calibrated to the chance that a box is right, and a
    threshold bounds the share of boxes that are missed. Book: D2L 14.

    >>> Detection(["cat", "dog"]).arguments()
    {'classes': ['cat', 'dog']}
    """

    name, watch, unit = "detection", "missed", "image"
    several = True
    classes: list[str]

    def __init__(self, classes: list[str]):
        if not isinstance(classes, list) or not classes or not all(isinstance(name, str) for name in classes):
            raise WonderlandError(f"Detection needs names of classes, not {classes!r:.60}.")
        self.outputs = len(classes)
        self.classes = list(classes)  # pyright: ignore[reportIncompatibleVariableOverride]

    def arguments(self) -> dict[str, Any]:
        return {"classes": self.classes}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """The sum of the losses of the detector."""
        more = {name: value for name, value in batch.fields.items() if name not in ("x", "boxes", "labels")}
        losses: dict[str, Tensor] = model.losses(batch["x"], batch["boxes"], batch["labels"], **more)  # pyright: ignore
        return torch.stack(list(losses.values())).sum(), float(len(batch))

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        if not callable(getattr(model, "losses", None)) or not callable(getattr(model, "detect", None)):
            return "has no losses(x, boxes, labels) and detect(x), which detectors need: take RetinaNet, TinySSD or FasterRCNN"
        return None

    def detections(self, view: View, most: int | None = None) -> Iterator[tuple[Detections, Tensor, Tensor]]:
        """What the model finds in each image, and its true boxes and labels (empty where they are not known)."""
        with torch.inference_mode():
            for batch in view.batches(SIZE, most):
                boxes: Any = batch["boxes"] if "boxes" in batch else [None] * len(batch)
                labels: Any = batch["labels"] if "boxes" in batch else [None] * len(batch)
                for row, box, label in zip(view.model.detect(batch["x"], least=LEAST), boxes, labels, strict=True):  # pyright: ignore
                    plain = {name: value.cpu() for name, value in row.items()}
                    real = label is not None and (label >= 0).cpu()
                    yield (
                        plain,
                        box.cpu()[real] if label is not None else torch.zeros(0, 4),
                        (label.cpu()[real] if label is not None else torch.zeros(0, dtype=torch.int64)),
                    )

    def collected(self, view: View, most: int | None = None) -> tuple[list[Detections], list[Detections]]:
        """Detected and true boxes of every image."""
        detections, truth = [], []
        for row, boxes, labels in self.detections(view, most):
            detections.append(row)
            truth.append({"boxes": boxes, "classes": labels})
        return detections, truth

    def measure(self, view: View) -> dict[str, float]:
        ap = average_precision(*self.collected(view, WATCHED))
        values = {name: 0.0 if ap[name] is None or np.isnan(ap[name]) else float(ap[name]) for name in ("ap", "ap50")}
        return values | {"missed": 1 - (values["ap"] + values["ap50"]) / 2}

    def calibrate(self, validation: View, calibration: View, level: float) -> BoxTrust:
        """The logistic of the scores and the best threshold from the validation part, missed shares from the calibration part."""
        detections, truth = self.collected(validation)
        scores, right = self._matched(detections, truth)
        total = sum(len(row["boxes"]) for row in truth)
        losses = [missed_boxes(row, boxes, labels) for row, boxes, labels in self.detections(calibration) if len(boxes)]
        risks = np.stack(losses).mean(0).tolist() if losses else [1.0] * len(THRESHOLDS)
        slope, offset = fit_scores(scores, right)
        return BoxTrust(slope, offset, best_threshold(scores, right, total), risks, len(losses), check_level(level))

    def _matched(self, detections: list[Detections], truth: list[Detections]) -> tuple[np.ndarray, np.ndarray]:
        """Scores of all found boxes, and which of them match a true box."""
        right = [right_boxes(row, real["boxes"], real["classes"]) for row, real in zip(detections, truth, strict=True)]
        scores = [row["scores"].numpy().astype(np.float64) for row in detections]
        return np.concatenate([np.zeros(0), *scores]), np.concatenate([np.zeros(0, bool), *right])

    def trust(self, saved: Any) -> BoxTrust:
        return BoxTrust.from_json(saved)

    def evaluate(self, view: View, trust: BoxTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        detections, truth = self.collected(view)
        ap = average_precision(detections, truth)
        scores, right = self._matched(detections, truth)
        threshold, total = trust.threshold(level), sum(len(row["boxes"]) for row in truth)
        kept = scores >= threshold
        hits, count = int((kept & right).sum()), int(kept.sum())
        metrics = {
            "ap50": ap["ap50"], "ap": ap["ap"], "ap75": ap["ap75"], "precision": hits / count if count else None,
            "recall": hits / total if total else None, "boxes": float(total),
        }  # fmt: skip
        if any("masks" in row for row in detections):
            metrics["mask_iou"] = self._mask_iou(view, detections)
        shares = [
            float(missed_boxes(_above(row, threshold), real["boxes"], real["classes"])[0])
            for row, real in zip(detections, truth, strict=True)
            if len(real["boxes"])
        ]
        note = "" if trust.promised(level) is not None else (
            f"{trust.rows} calibration images are not enough, or the model misses too much, to promise that at most {1 - level:.0%} of "
            "the boxes are missed: the lowest threshold is used."
        )  # fmt: skip
        conformal = {
            "level": level, "coverage": 1 - float(np.mean(shares)) if shares else None, "note": note,
            "mean_size": count / max(1, len(detections)), "threshold": threshold, "of": "boxes",
        }  # fmt: skip
        seen = scores >= 0.05
        return {
            "rows": len(detections),
            "metrics": {name: _plain(value) for name, value in metrics.items()},
            "conformal": conformal,
        } | (score_reliability(scores[seen], trust.probability(scores[seen]), right[seen]))

    def _mask_iou(self, view: View, detections: list[Detections]) -> float | None:
        """The mean IoU of the drawn and the true masks of objects whose box was found, over the true box."""
        from wonderland.models.vision.mask_head import mask_targets

        ratios: list[float] = []
        for first, batch in zip(range(0, len(detections), SIZE), view.batches(SIZE), strict=True):
            for row in range(len(batch)):
                mine, real = detections[first + row], batch["labels"][row] >= 0
                overlap = iou(batch["boxes"][row][real].cpu(), mine["boxes"])
                if not overlap.numel():
                    continue
                best, place = overlap.max(1)
                owners = real.nonzero()[:, 0][best >= OVERLAP]
                boxes, drawn = mine["boxes"][place[best >= OVERLAP]], mine["masks"][place[best >= OVERLAP]] >= 0.5
                fields = (
                    {name: batch[name].cpu() for name in ("outlines", "origins", "places")}
                    if "outlines" in batch
                    else {}
                )
                if not fields or not len(owners):
                    continue
                truth = mask_targets(fields, boxes, torch.full((len(owners),), row), owners) >= 0.5
                both, either = (drawn & truth).sum((1, 2)), (drawn | truth).sum((1, 2))
                ratios += (both / either.clamp_min(1)).tolist()
        return float(np.mean(ratios)) if ratios else None

    def predictions(self, view: View, trust: BoxTrust, level: float | None = None) -> pd.DataFrame:
        """A row for each box, in pixels of the image as it is on disk; an image without boxes has one row with empty cells."""
        threshold = trust.threshold(trust.level if level is None else level)
        dataset: Any = view.dataset
        paths = dataset.labels().get("path") or [str(row) for row in range(len(dataset))]
        rows: list[tuple[Any, ...]] = []
        asked = view.asked
        if (path := getattr(asked, "json", None)) is not None:
            check_json(path)  # before the model works
        if (folder := getattr(asked, "draw", None)) is not None:
            ready_folder(folder)
        kept = list(self.answered(view, trust, threshold))
        for row, detections in enumerate(kept):
            for box, score, label in zip(
                detections["boxes"].tolist(), detections["scores"].tolist(), detections["classes"].tolist(), strict=True
            ):
                rows.append((paths[row], self.classes[label], score, *(round(side, 2) for side in box)))
            if not len(detections["boxes"]):
                rows.append((paths[row], None, None, None, None, None, None))
        table = pd.DataFrame(rows, columns=["path", "prediction", "probability", "left", "top", "right", "bottom"])
        if path is not None:
            write_boxes(path, kept, paths, dataset.fits, self.classes)
        if folder is not None:
            draw_detections(folder, dataset, kept, paths, self.classes)
        return table

    def answered(self, view: View, trust: BoxTrust, threshold: float) -> Iterator[Detections]:
        """The boxes of each picture whose score reaches a threshold, in its own pixels, with calibrated scores."""
        fits = view.dataset.fits  # pyright: ignore[reportOptionalMemberAccess]
        for row, (detections, _, _) in enumerate(self.detections(view)):
            detections, fit = _above(detections, threshold), fits[row]
            boxes = (detections["boxes"] / fit.scale).clamp_min(0)
            detections["boxes"] = torch.minimum(boxes, boxes.new_tensor([fit.width, fit.height] * 2))
            detections["scores"] = torch.from_numpy(trust.probability(detections["scores"].numpy()))
            yield detections

    def answers(self, trust: BoxTrust, level: float) -> nn.Module | str:
        return BoxAnswers(self, trust, level, LEAST)

    def expected(self, run: Any, source: Any, level: float) -> list[Detections]:
        """The boxes of each picture, before they are rounded."""
        view = run.view(run.encoder.open(source))
        return list(self.answered(view, run.trust, run.trust.threshold(level)))

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of scores, and of corners as parts of the longest side; infinite where another box is found."""
        return boxes_apart(table, exported)

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        if getattr(encoder, "task", None) != "detection" or encoder.classes != self.classes:
            return "preprocess.json has other classes than config.json: the two do not belong together."
        if getattr(model, "classes", self.outputs) != self.outputs:
            return "The model has other classes than its task: config.json is damaged."
        return None

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", True), ("ap50", "AP at IoU 0.5", False), ("ap", "AP (COCO)", False)]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        return vision_sections()

    def facts(self, view: View, trust: BoxTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """Pictures with true and found boxes, precision-recall curves, the images with the most faults, and what is missed."""
        metrics, n = record["metrics"], record["rows"]
        detections, truth = self.collected(view)
        threshold = trust.threshold(trust.level)
        shown = [_above(row, threshold) for row in detections]
        for row in shown:
            row["scores"] = torch.from_numpy(trust.probability(row["scores"].numpy()))
        faults = [
            len(real["boxes"]) + len(row["boxes"]) - 2 * int(right_boxes(row, real["boxes"], real["classes"]).sum())
            for row, real in zip(shown, truth, strict=True)
        ]
        rows = np.asarray(view.part)
        verdict = (
            f"Average precision {number(metrics['ap50'], 3)} at an IoU of one half ({number(metrics['ap'], 3)} as COCO counts it) on "
            f"{n:,} unseen images; of the true boxes, {percent(record['conformal']['coverage'])} are found."
        )
        return {
            "verdict": verdict,
            "answers": f"boxes of {len(self.classes):,} {'class' if len(self.classes) == 1 else 'classes'}",
            "conformal": None,
            "vision": {
                "examples": example_pictures(dataset, rows, shown, truth, self.classes, range(min(8, len(rows)))),
                "mistakes": example_pictures(
                    dataset, rows, shown, truth, self.classes,
                    [i for i in np.argsort(-np.asarray(faults), kind="stable")[:8].tolist() if faults[i]],
                ),
                "precision": precision_curves(detections, truth, self.classes),
                "risk": record["conformal"],
            },
            "reliability": record["reliability"] | {"ece_before": record["ece"]["before"], "ece_after": record["ece"]["after"]},
        }  # fmt: skip

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            (
                "Find boxes in other images",
                f"wonderland predict {folder} IMAGES -o boxes.csv --draw pictures --json boxes.json",
            ),
            ("Measure on other images", f"wonderland evaluate {folder} IMAGES_WITH_BOXES"),
        ]


def _above(detections: Detections, threshold: float) -> Detections:
    kept = detections["scores"] >= threshold
    return {name: value[kept] for name, value in detections.items()}


def _plain(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)
