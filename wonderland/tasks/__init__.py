"""What is learned: loss, metrics, decoding."""

from wonderland.tasks import losses, metrics, penalties, text
from wonderland.tasks.classification import Classification
from wonderland.tasks.language import LanguageModelling
from wonderland.tasks.noise import gradient_noise, label_noise
from wonderland.tasks.regression import Regression
from wonderland.tasks.translation import Translation

Task = Classification | Regression

__all__ = [
    "Classification",
    "LanguageModelling",
    "Regression",
    "Task",
    "Translation",
    "gradient_noise",
    "label_noise",
    "losses",
    "metrics",
    "penalties",
    "text",
]
