"""Segmentation: a class for each pixel."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.ops.vision import dice_loss
from wonderland.tasks.box_files import write_regions
from wonderland.tasks.detection_trust import THRESHOLDS, PixelTrust, missed_pixels, score_reliability
from wonderland.tasks.mask_pictures import mask_pictures, write_masks
from wonderland.tasks.pixel_answers import PixelAnswers
from wonderland.tasks.task import Task
from wonderland.tasks.view import View
from wonderland.trust import check_level, fit_temperature
from wonderland.understand.format import number, percent
from wonderland.understand.sections import Section
from wonderland.understand.sections.vision import vision_sections

IGNORED, SIZE, WATCHED, PIXELS = 255, 16, 400, 200_000
SHARES = 40  # classes with a column of their own


@part
class Segmentation(Task):
    r"""Cross-entropy of the class of each pixel, and the dice loss of each class.

    .. math:: L = -\frac{1}{n} \sum_i \log p_{i, y_i} + \text{dice} \, \Bigl( 1 - \frac{2 \sum_i p_i y_i + 1}{\sum_i p_i + \sum_i y_i + 1} \Bigr)

    `weights` multiply the cross-entropy of each class: without them, small objects count for little beside their background.
    Pixels of class 255 do not count. A model gives (b, classes, h, w). `background` says that class 0 is what lies around the
    objects; the share of missed pixels, which the sets bound, is then that of the others. Book: D2L 14.9 to 14.11.

    >>> Segmentation(["background", "cat"], background=True).arguments()
    {'classes': ['background', 'cat'], 'background': True, 'dice': 0.5, 'weights': None}
    """

    name, watch, unit = "segmentation", "missed", "image"
    classes: list[str]

    def __init__(
        self, classes: list[str], background: bool = False, dice: float | int = 0.5, weights: list[float] | None = None
    ):  # fmt: skip
        if not isinstance(classes, list) or len(classes) < 2 or not all(isinstance(name, str) for name in classes):
            raise WonderlandError(f"Segmentation needs names of at least two classes, not {classes!r:.60}.")
        if (
            not isinstance(background, bool)
            or isinstance(dice, bool)
            or not isinstance(dice, int | float)
            or not 0 <= dice <= 100
        ):
            raise WonderlandError("Segmentation needs background as true or false, and dice from 0 to 100.")
        if weights is not None and (len(weights) != len(classes) or not all(0 < weight < 1e6 for weight in weights)):
            raise WonderlandError(
                f"Segmentation needs one weight above 0 for each of its {len(classes)} classes, not {weights!r:.60}."
            )
        self.classes = list(classes)  # pyright: ignore[reportIncompatibleVariableOverride]
        self.outputs, self.background, self.dice = len(classes), background, dice
        self.weights = weights

    def arguments(self) -> dict[str, Any]:
        return {"classes": self.classes, "background": self.background, "dice": self.dice, "weights": self.weights}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        logits, masks = model(batch["x"]), batch["masks"].long()
        counted = masks != IGNORED
        count = int(counted.sum())
        goal = torch.where(counted, masks, -100)
        weight = None if self.weights is None else logits.new_tensor(self.weights)
        plain = F.cross_entropy(logits, goal, weight, ignore_index=-100, reduction="sum") / max(1, count)
        if not self.dice:
            return plain, float(len(batch))
        true = F.one_hot(masks.clamp_max(self.outputs - 1), self.outputs).movedim(3, 1) * counted[:, None]
        chances = logits.softmax(1) * counted[:, None]
        # All images of a batch together: a class that an image lacks would otherwise count as missed.
        joined = dice_loss(chances.movedim(0, 1)[None].flatten(2, 3), true.movedim(0, 1)[None].flatten(2, 3))
        return plain + self.dice * joined, float(len(batch))

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        shape, x = tuple(model(batch["x"]).shape), batch["x"]
        wanted = (len(batch), self.outputs, *x.shape[2:])
        return (
            None
            if shape == wanted
            else f"returns {shape} for two images, where this task needs {wanted}: take UNet or FCN"
        )

    def logits(self, view: View, most: int | None = None) -> Iterator[tuple[Tensor, Batch]]:
        """Scores of the pixels (b, classes, h, w) of every batch."""
        with torch.inference_mode():
            for batch in view.batches(SIZE, most):
                yield view.model(batch["x"]), batch

    def counts(self, pairs: Iterator[tuple[Tensor, Tensor]]) -> Tensor:
        """How many pixels of each true class (rows) were given each class (columns)."""
        table = torch.zeros(self.outputs * self.outputs, dtype=torch.float64)
        for predicted, masks in pairs:
            counted = masks != IGNORED
            index = masks[counted].long() * self.outputs + predicted[counted]
            table += torch.bincount(index.cpu(), minlength=len(table))
        return table.view(self.outputs, self.outputs)

    def measure(self, view: View) -> dict[str, float]:
        table = self.counts((logits.argmax(1), batch["masks"]) for logits, batch in self.logits(view, WATCHED))
        measures = overlap_measures(table)
        return {
            "mean_iou": measures["mean_iou"],
            "pixel_accuracy": measures["pixel_accuracy"],
            "missed": 1 - measures["mean_iou"],
        }

    def calibrate(self, validation: View, calibration: View, level: float) -> PixelTrust:
        """A temperature from pixels of the validation part, shares of missed pixels from the calibration part."""
        logits, labels = self._sampled(validation)
        temperature = fit_temperature(logits, labels) if len(labels) else 1.0
        trust = PixelTrust(temperature, [1.0] * len(THRESHOLDS), 0, check_level(level))
        losses = [self._losses(outputs, batch, trust) for outputs, batch in self.logits(calibration)]
        joined = torch.cat(losses) if losses else torch.zeros(0, len(THRESHOLDS))
        if len(joined):
            trust.risks, trust.rows = joined.mean(0).tolist(), len(joined)
        return trust

    def _losses(self, logits: Tensor, batch: Batch, trust: PixelTrust) -> Tensor:
        losses = missed_pixels(trust.probabilities(logits), batch["masks"], self.background).cpu()
        return losses[~losses.isnan().any(1)]

    def _sampled(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Scores of every k-th counted pixel, 200,000 at most."""
        kept, labels = [], []
        for logits, batch in self.logits(view):
            masks = batch["masks"]
            step = stride_of_pixels(masks, view.count)
            rows = logits.movedim(1, 3).flatten(0, 2)[::step]
            label = masks.flatten()[::step]
            kept.append(rows[label != IGNORED].cpu())
            labels.append(label[label != IGNORED].cpu())
        if not kept:
            return np.zeros((0, self.outputs)), np.zeros(0, np.int64)
        return torch.cat(kept).double().numpy(), torch.cat(labels).long().numpy()

    def trust(self, saved: Any) -> PixelTrust:
        return PixelTrust.from_json(saved)

    def evaluate(self, view: View, trust: PixelTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        threshold = trust.threshold(level)
        place = int(np.flatnonzero(threshold <= THRESHOLDS)[0])
        table, losses, sizes, rows, sampled = torch.zeros(self.outputs, self.outputs).double(), [], 0.0, 0, []
        for logits, batch in self.logits(view):
            chances = trust.probabilities(logits)
            table += self.counts(iter([(logits.argmax(1), batch["masks"])]))
            losses.append(self._losses(logits, batch, trust)[:, place])
            sizes += float((chances >= threshold).sum(1).float().mean()) * len(batch)
            rows += len(batch)
            sampled.append(self._sure(logits, chances, batch["masks"], view.count))
        before, after, right = (np.concatenate(column) for column in zip(*sampled, strict=True))
        share = torch.cat(losses)
        note = "" if trust.promised(level) is not None else (
            f"{trust.rows} calibration images are not enough, or the model misses too much, to promise that at most {1 - level:.0%} of "
            "the pixels are missed: the lowest threshold is used."
        )  # fmt: skip
        conformal = {
            "level": level, "coverage": 1 - float(share.mean()) if len(share) else None, "note": note,
            "mean_size": sizes / max(1, rows), "threshold": threshold, "of": "pixels",
        }  # fmt: skip
        measures = overlap_measures(table)
        by_class = measures.pop("by_class")
        return {"rows": rows, "metrics": measures, "conformal": conformal, "by_class": by_class} | score_reliability(
            before, after, right
        )

    def _sure(self, logits: Tensor, chances: Tensor, masks: Tensor, images: int) -> tuple[np.ndarray, ...]:
        """Of every k-th counted pixel: confidence before and after calibration, and whether it is right."""
        step = stride_of_pixels(masks, images)
        kept = masks.flatten()[::step] != IGNORED
        plain = logits.softmax(1).amax(1).flatten()[::step][kept]
        sure, label = chances.max(1)
        right = (label == masks).flatten()[::step][kept]
        return (
            plain.double().cpu().numpy(), sure.flatten()[::step][kept].double().cpu().numpy(), right.cpu().numpy(),
        )  # fmt: skip

    def predictions(self, view: View, trust: PixelTrust, level: float | None = None) -> pd.DataFrame:
        """A row for each image: the class with the most pixels (background aside), the share of each class, and of unsure pixels."""
        threshold = trust.threshold(trust.level if level is None else level)
        dataset: Any = view.dataset
        paths = dataset.labels().get("path") or [str(row) for row in range(len(dataset))]
        rows: list[dict[str, Any]] = []
        writer = write_masks(view.asked, dataset, paths, self.classes)
        regions = write_regions(getattr(view.asked, "json", None), paths, dataset.fits, self.classes, self.background)
        for row, own in enumerate(self.own_size(view, trust)):
            label = own.argmax(0)
            counts = torch.bincount(label.flatten(), minlength=self.outputs).double()
            share = (counts / counts.sum()).tolist()
            objects = counts[1:] if self.background else counts
            best = int(objects.argmax()) + self.background if objects.sum() else 0
            summary = {
                "path": paths[row],
                "prediction": self.classes[best],
                "unsure": float(((own >= threshold).sum(0) > 1).float().mean()),
            }
            shares = {f"share({name})": value for name, value in zip(self.classes[:SHARES], share, strict=False)}
            rows.append(summary | shares)
            mask = label.numpy().astype(np.uint8)
            writer(row, mask)
            regions.add(row, mask, own)
        regions.close()
        return pd.DataFrame(rows)

    def own_size(self, view: View, trust: PixelTrust) -> Iterator[Tensor]:
        """Calibrated probabilities of the pixels of each picture, in its own size (classes, height, width)."""
        fits = iter(view.dataset.fits)  # pyright: ignore[reportOptionalMemberAccess]
        for logits, _ in self.logits(view):
            for chance in trust.probabilities(logits).cpu():
                fit = next(fits)
                high, wide = max(1, round(fit.height * fit.scale)), max(1, round(fit.width * fit.scale))
                own, size = chance[:, :high, :wide], (fit.height, fit.width)
                if (high, wide) != size:
                    own = F.interpolate(own[None], size=size, mode="bilinear", align_corners=False)[0]
                yield own

    def answers(self, trust: PixelTrust, level: float) -> nn.Module | str:
        return PixelAnswers(self, trust, level)

    def expected(self, run: Any, source: Any, level: float) -> np.ndarray:
        """Probabilities of the pixels of pictures of one size (n, classes, height, width)."""
        return np.stack([own.numpy() for own in self.own_size(run.view(run.encoder.open(source)), run.trust)])

    def difference(self, table: Any, exported: Mapping[str, Any]) -> float:
        """Of the probabilities of pixels; the class of a pixel may differ only between two that are equally probable."""
        mask = exported["mask"][:, None]
        chosen = np.take_along_axis(table, mask, 1)[:, 0]
        count = np.stack([(mask == kind).mean((1, 2, 3)) for kind in range(self.outputs)], 1)
        if np.abs(count - exported["share"]).max(initial=0.0) > 1e-9:
            return float("inf")
        largest = float(np.abs(table - exported["probabilities"]).max(initial=0.0))
        return max(largest, float((table.max(1) - chosen).max(initial=0.0)))

    def check_run(self, model: nn.Module, encoder: Any, trust: Any, folds: int) -> str | None:
        if getattr(encoder, "task", None) != "segmentation" or encoder.classes != self.classes:
            return "preprocess.json has other classes than config.json: the two do not belong together."
        return None

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("loss", "loss", True), ("mean_iou", "mean IoU", False)]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        return vision_sections()

    def facts(self, view: View, trust: PixelTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        """Pictures with true and found masks, the IoU of each class, the worst images, and what is missed."""
        metrics, n = record["metrics"], record["rows"]
        predicted: list[np.ndarray] = []
        for logits, _ in self.logits(view, WATCHED):
            predicted += list(logits.argmax(1).cpu().numpy().astype(np.uint8))
        rows = np.asarray(view.part)[: len(predicted)]
        wrong = []
        for row, mask in zip(rows, predicted, strict=True):
            true = dataset.masks(np.array([row]))[0]
            wrong.append(float(((mask != true) & (true != IGNORED)).mean()))
        verdict = (
            f"Mean IoU {number(metrics['mean_iou'], 3)} on {n:,} unseen images, {percent(metrics['pixel_accuracy'])} of the pixels right; "
            f"sets of classes hold the true one for {percent(record['conformal']['coverage'])} of the pixels of objects."
        )
        by_class = [
            {"name": name, "value": value}
            for name, value in zip(self.classes, record["by_class"], strict=True)
            if value is not None
        ]
        return {
            "verdict": verdict,
            "answers": f"masks of {len(self.classes):,} classes",
            "conformal": None,
            "vision": {
                "examples": mask_pictures(dataset, rows, predicted, self.classes, range(min(6, len(rows)))),
                "mistakes": mask_pictures(dataset, rows, predicted, self.classes, np.argsort(-np.asarray(wrong), kind="stable")[:6].tolist()),
                "by_class": by_class,
                "risk": record["conformal"],
            },
            "reliability": record["reliability"] | {
                "ece_before": record["ece"]["before"], "ece_after": record["ece"]["after"], "temperature": trust.temperature,
            },
        }  # fmt: skip

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Masks of other images", f"wonderland predict {folder} IMAGES -o shares.csv --draw pictures"),
            ("Measure on other images", f"wonderland evaluate {folder} IMAGES_WITH_MASKS"),
        ]


def stride_of_pixels(masks: Tensor, images: int) -> int:
    """Every how many pixels one is taken, so that about 200,000 are; it shares no factor with the width, so all columns count."""
    step = max(1, masks[0].numel() * images // PIXELS)
    while math.gcd(step, masks.shape[2]) > 1:
        step += 1
    return step


def overlap_measures(table: Tensor) -> dict[str, Any]:
    """Mean IoU, accuracy of pixels, and the IoU of each class, from counts (classes, classes); None for classes without pixels.

    >>> overlap_measures(torch.tensor([[3.0, 1.0], [0.0, 4.0]], dtype=torch.float64))["mean_iou"]
    0.775
    """
    both = table.diagonal()
    union = table.sum(0) + table.sum(1) - both
    ratio = [float(a / b) if b > 0 else None for a, b in zip(both, union, strict=True)]
    known = [value for value in ratio if value is not None]
    return {
        "mean_iou": float(np.mean(known)) if known else 0.0,
        "pixel_accuracy": float(both.sum() / table.sum().clamp_min(1)),
        "by_class": ratio,
    }
