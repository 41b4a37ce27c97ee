"""Models that forecast series."""

from wonderland.models.series.autoregressive import DeepAR, Seq2SeqForecaster
from wonderland.models.series.blend import ForecastBlend
from wonderland.models.series.forecaster import Forecaster
from wonderland.models.series.linear import DLinear, LinearAutoregression, NLinear
from wonderland.models.series.nbeats import NBeats
from wonderland.models.series.patch import PatchTST
from wonderland.models.series.sequence import SequenceForecaster
from wonderland.models.series.tcn import TCN, TemporalBlock

__all__ = [
    "TCN",
    "DLinear",
    "DeepAR",
    "ForecastBlend",
    "Forecaster",
    "LinearAutoregression",
    "NBeats",
    "NLinear",
    "PatchTST",
    "Seq2SeqForecaster",
    "SequenceForecaster",
    "TemporalBlock",
]
