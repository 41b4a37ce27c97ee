"""What is learned: loss, metrics, decoding."""

from wonderland.tasks.classification import Classification
from wonderland.tasks.regression import Regression

Task = Classification | Regression

__all__ = ["Classification", "Regression", "Task"]
