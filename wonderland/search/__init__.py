"""Hyperparameter search: spaces, tuners, and studies that any number of workers share and no kill can lose."""

from wonderland.search.bayes import BayesianOptimisation, confidence_bound, expected_improvement
from wonderland.search.database import open_database
from wonderland.search.design_spaces import (
    Design,
    SpaceComparison,
    anynet_design,
    compare_spaces,
    distribution,
    distribution_band,
)
from wonderland.search.halving import ASHA, SuccessiveHalving
from wonderland.search.hyperband import BOHB, Hyperband
from wonderland.search.importance import importance
from wonderland.search.journal import Journal
from wonderland.search.optuna_mirror import mirror
from wonderland.search.pareto import pareto_front
from wonderland.search.report import render
from wonderland.search.space import Choice, Float, Integer, Space
from wonderland.search.space_file import read_space
from wonderland.search.study import Job, Result, Study
from wonderland.search.trial import Trial, best_trial
from wonderland.search.tuner import GridSearch, RandomSearch, Tuner
from wonderland.search.tuners import TUNERS, make_tuner
from wonderland.search.work import work

__all__ = [
    "ASHA",
    "BOHB",
    "TUNERS",
    "BayesianOptimisation",
    "Choice",
    "Design",
    "Float",
    "GridSearch",
    "Hyperband",
    "Integer",
    "Job",
    "Journal",
    "RandomSearch",
    "Result",
    "Space",
    "SpaceComparison",
    "Study",
    "SuccessiveHalving",
    "Trial",
    "Tuner",
    "anynet_design",
    "best_trial",
    "compare_spaces",
    "confidence_bound",
    "distribution",
    "distribution_band",
    "expected_improvement",
    "importance",
    "make_tuner",
    "mirror",
    "open_database",
    "pareto_front",
    "read_space",
    "render",
    "work",
]
