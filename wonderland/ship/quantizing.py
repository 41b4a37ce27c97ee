"""ONNX files with weights of one byte each, and what their answers lose by it."""

import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np


def int8(content: bytes) -> bytes:
    """An ONNX model with the constant factors of its matrix products as integers of 8 bits.

    Activations are scaled to 8 bits as they come, so no data is needed (dynamic quantization).
    """
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises a preparation that export has done
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
            model = onnx.load_from_string(content)
            del model.graph.value_info[:]  # shapes of values that are no longer there would stand in the way
            onnx.save(model, source)
            convolves = any(node.op_type == "Conv" for node in model.graph.node)
            # Runtimes have convolutions of unsigned weights only.
            quantize_dynamic(source, target, weight_type=QuantType.QUInt8 if convolves else QuantType.QInt8)
            return target.read_bytes()
    finally:
        root.setLevel(level)


def loss(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What the answers of a quantized model lose against the exact one on the same inputs, in a sentence."""
    first = next(iter(before))
    start, rows = "Against the exact model on", len(before[first])
    if "probabilities" in before and "prediction" in before:
        same = int(_equal(before["prediction"], after["prediction"]).sum())
        sets = int(_equal(before["set"], after["set"]).sum()) if "set" in before else None
        change = float(np.abs(before["probabilities"] - after["probabilities"]).max(initial=0.0))
        of_sets = "" if sets is None else f" the same set in {sets},"
        return f"{start} {rows} rows: the same class in {same},{of_sets} probabilities differ by at most {change:.2g}."
    if "loss" in before:
        exact, coarse = (float(np.nanmean(outputs["loss"])) for outputs in (before, after))
        return f"{start} {rows} texts: {coarse:.4f} nats per token in place of {exact:.4f}."
    if "count" in before:
        same = int((before["count"] == after["count"]).sum())
        return f"{start} {rows} pictures: the same number of boxes in {same}."
    if "prediction" not in before:
        name = next(name for name in ("probabilities", "log_probabilities", *before) if name in before)
        change = np.abs(_flat(before[name]) - _flat(after[name]))
        return f"{start} {rows} rows: {name.replace('_', ' ')} differ by at most {change.max(initial=0.0):.2g}, {change.mean():.2g} on average."
    change = np.abs(before[first].astype(np.float64) - after[first])
    share = ""
    if "low" in before:
        width = np.median(before["high"] - before["low"])
        share = f", {change.mean() / width:.1%} of the width of an interval" if 0 < width < np.inf else ""
    return f"{start} {rows} rows: predictions differ by {change.mean():.3g} on average{share}."


def _flat(values: Any) -> np.ndarray:
    """All numbers of an array, or of a list of rows of several lengths."""
    pieces = [values] if isinstance(values, np.ndarray) else values
    return np.concatenate([np.asarray(piece, np.float64).ravel() for piece in pieces])


def _equal(before: Any, after: Any) -> np.ndarray:
    """Which rows are equal in all they hold."""
    same = np.asarray(before) == np.asarray(after)
    return same.reshape(len(same), -1).all(-1)
