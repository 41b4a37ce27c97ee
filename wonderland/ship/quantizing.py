"""ONNX files with weights of one byte each, and what their answers lose by it."""

import logging
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def int8(content: bytes) -> bytes:
    """An ONNX model with the constant factors of its matrix products as integers of 8 bits.

    Activations are scaled to 8 bits as they come, so no data is needed (dynamic quantization).
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)  # it advises a preparation that export has done
    try:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
            source.write_bytes(content)
            quantize_dynamic(source, target, weight_type=QuantType.QInt8)
            return target.read_bytes()
    finally:
        root.setLevel(level)


def loss(exact: Callable[..., Mapping[str, Any]], coarse: Callable[..., Mapping[str, Any]], feed: Any) -> str:
    """What the answers of a quantized model lose against the exact one on the same inputs, in a sentence."""
    before, after = exact(feed), coarse(feed)
    rows = len(before["prediction"])
    if "probabilities" in before:
        same = int((np.asarray(before["prediction"]) == np.asarray(after["prediction"])).sum())
        sets = int((np.asarray(before["set"]) == np.asarray(after["set"])).all(-1).sum())
        change = float(np.abs(before["probabilities"] - after["probabilities"]).max(initial=0.0))
        return (
            f"Against the exact model on {rows} rows: the same class in {same}, the same set in {sets}, "
            f"probabilities differ by at most {change:.2g}."
        )
    change = np.abs(before["prediction"] - after["prediction"])
    width = np.median(before["high"] - before["low"])
    share = f", {change.mean() / width:.1%} of the width of an interval" if 0 < width < np.inf else ""
    return f"Against the exact model on {rows} rows: predictions differ by {change.mean():.3g} on average{share}."
