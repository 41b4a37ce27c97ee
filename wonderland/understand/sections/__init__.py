"""The sections of a report, in the order of the page. Each returns HTML, or an empty string when its facts are missing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wonderland.understand.facts import Facts, predicts_values
from wonderland.understand.sections.alignments import alignments
from wonderland.understand.sections.bands import bands
from wonderland.understand.sections.baselines import baselines
from wonderland.understand.sections.clusters import clusters
from wonderland.understand.sections.data import data
from wonderland.understand.sections.decisions import decisions
from wonderland.understand.sections.errors import errors
from wonderland.understand.sections.importance import importance
from wonderland.understand.sections.labels import labels
from wonderland.understand.sections.leaderboard import leaderboard
from wonderland.understand.sections.learning import learning
from wonderland.understand.sections.mistakes import mistakes
from wonderland.understand.sections.network import network
from wonderland.understand.sections.pictures import pictures
from wonderland.understand.sections.record import cost, recipe, reproduce
from wonderland.understand.sections.sounds import sounds
from wonderland.understand.sections.summary import header, overview
from wonderland.understand.sections.trust import calibration, conformal
from wonderland.understand.sections.writing import attention, neighbours, samples

__all__ = ["SECTIONS", "Section", "header", "with_own"]


@dataclass(frozen=True)
class Section:
    """A section of the page: anchor, link text in the navigation, heading, and the function that writes its HTML.

    `regression_heading`, if given, replaces `heading` where numbers are predicted.
    """

    anchor: str
    link: str
    heading: str
    body: Callable[[Facts], str]
    regression_heading: str = ""

    def title(self, facts: Facts) -> str:
        """The heading for these facts."""
        return self.regression_heading if self.regression_heading and predicts_values(facts) else self.heading


SECTIONS = (
    Section("summary", "Summary", "Summary", overview),
    Section("baselines", "Baselines", "Beside simple methods", baselines),
    Section("leaderboard", "Leaderboard", "Leaderboard", leaderboard),
    Section("learning", "Learning", "Learning curves", learning),
    Section("samples", "Samples", "Generated samples", samples),
    Section("errors", "Errors", "Confusion matrix", errors, "Predictions and residuals"),
    Section("labels", "Labels", "Labels", labels),
    Section("calibration", "Calibration", "Calibration", calibration),
    Section("conformal", "Coverage", "Conformal prediction sets", conformal, "Conformal prediction intervals"),
    Section("decisions", "Decisions", "Decisions", decisions),
    Section("bands", "Bands", "Predictions along each column", bands),
    Section("mistakes", "Mistakes", "Most confident mistakes", mistakes, "Largest errors"),
    Section("alignments", "Alignments", "Alignments", alignments),
    Section("sounds", "Sounds", "Recordings", sounds),
    Section("pictures", "Pictures", "Pictures", pictures),
    Section("importance", "Importance", "Importance", importance),
    Section("neighbours", "Neighbours", "Nearest neighbours", neighbours),
    Section("clusters", "Clusters", "Clusters of texts", clusters),
    Section("attention", "Attention", "Attention weights", attention),
    Section("network", "Graph", "Graph", network),
    Section("data", "Data", "Data", data),
    Section("cost", "Cost", "Cost", cost),
    Section("recipe", "Recipe", "Recipe", recipe),
    Section("repeat", "Reproduce", "How to reproduce this run", reproduce),
)


def with_own(own: Mapping[str, Sequence[Section]]) -> tuple[Section, ...]:
    """The sections of every report, in order, where those of these anchors are replaced by a task's own."""
    return tuple(each for section in SECTIONS for each in own.get(section.anchor, (section,)))
