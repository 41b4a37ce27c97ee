"""The sections of a report, in the order of the page. Each gives HTML, or nothing when its facts are missing."""

from collections.abc import Callable
from dataclasses import dataclass

from wonderland.understand.facts import Facts, predicts_values
from wonderland.understand.sections.data import data
from wonderland.understand.sections.errors import errors
from wonderland.understand.sections.importance import importance
from wonderland.understand.sections.learning import learning
from wonderland.understand.sections.mistakes import mistakes
from wonderland.understand.sections.record import cost, recipe, repeat
from wonderland.understand.sections.summary import header, overview
from wonderland.understand.sections.trust import calibration, conformal
from wonderland.understand.sections.writing import attention, neighbours, samples

__all__ = ["SECTIONS", "Section", "header"]


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor, its name in the navigation, its heading (another where numbers are predicted), and what it says."""

    anchor: str
    link: str
    heading: str
    body: Callable[[Facts], str]
    of_values: str = ""

    def title(self, facts: Facts) -> str:
        return self.of_values if self.of_values and predicts_values(facts) else self.heading


SECTIONS = (
    Section("glance", "Summary", "At a glance", overview),
    Section("learning", "Learning", "How it learned", learning),
    Section("samples", "Samples", "What it writes", samples),
    Section("errors", "Errors", "What is taken for what", errors, "Predicted against true"),
    Section("calibration", "Confidence", "Can its confidence be trusted?", calibration),
    Section("conformal", "Coverage", "Sets with a promise", conformal, "Intervals with a promise"),
    Section("mistakes", "Mistakes", "Most confident mistakes", mistakes, "Largest errors"),
    Section("importance", "Importance", "What it looks at", importance),
    Section("neighbours", "Neighbours", "What it takes for alike", neighbours),
    Section("attention", "Attention", "Where it looks", attention),
    Section("data", "Data", "The data", data),
    Section("cost", "Cost", "What it costs", cost),
    Section("recipe", "Recipe", "The full recipe", recipe),
    Section("repeat", "Repeat", "How to repeat it", repeat),
)
