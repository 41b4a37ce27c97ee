"""Tasks: loss, metrics, calibration, predictions and abilities of each."""

from wonderland.tasks import losses, metrics, penalties, text
from wonderland.tasks.answer_trust import AnswerTrust
from wonderland.tasks.answering import Answering
from wonderland.tasks.classification import Classification
from wonderland.tasks.control import Control
from wonderland.tasks.detection import Detection
from wonderland.tasks.forecast import Forecast
from wonderland.tasks.forecast_trust import ForecastTrust
from wonderland.tasks.generation import Generation, SampleTrust
from wonderland.tasks.label_trust import LabelTrust
from wonderland.tasks.language import LanguageModelling
from wonderland.tasks.matching import Matching
from wonderland.tasks.multilabel import MultiLabel
from wonderland.tasks.noise import gradient_noise, label_noise
from wonderland.tasks.ranking import Ranking
from wonderland.tasks.ranking_measures import ranking_measures
from wonderland.tasks.regression import Regression
from wonderland.tasks.segmentation import Segmentation
from wonderland.tasks.tag_trust import TagTrust
from wonderland.tasks.tagging import Tagging
from wonderland.tasks.task import Task, Trust
from wonderland.tasks.token_trust import TokenTrust
from wonderland.tasks.transcription import Transcription
from wonderland.tasks.translation import Translation
from wonderland.tasks.trust import RowTrust
from wonderland.tasks.view import Holdout, View

__all__ = [
    "AnswerTrust",
    "Answering",
    "Classification",
    "Control",
    "Detection",
    "Forecast",
    "ForecastTrust",
    "Generation",
    "Holdout",
    "LabelTrust",
    "LanguageModelling",
    "Matching",
    "MultiLabel",
    "Ranking",
    "Regression",
    "RowTrust",
    "SampleTrust",
    "Segmentation",
    "TagTrust",
    "Tagging",
    "Task",
    "TokenTrust",
    "Transcription",
    "Translation",
    "Trust",
    "View",
    "gradient_noise",
    "label_noise",
    "losses",
    "metrics",
    "penalties",
    "ranking_measures",
    "text",
]
