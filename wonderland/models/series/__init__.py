"""Models that forecast series."""

from wonderland.models.series.blend import ForecastBlend
from wonderland.models.series.forecaster import Forecaster
from wonderland.models.series.linear import DLinear, LinearAutoregression, NLinear

__all__ = ["DLinear", "ForecastBlend", "Forecaster", "LinearAutoregression", "NLinear"]
