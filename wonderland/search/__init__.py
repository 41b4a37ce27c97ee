"""Hyperparameter search: spaces, tuners, and studies that any number of workers share and no kill can lose."""

from wonderland.search.bayes import BayesianOptimisation, confidence_bound, expected_improvement
from wonderland.search.halving import ASHA, SuccessiveHalving
from wonderland.search.hyperband import BOHB, Hyperband
from wonderland.search.importance import importance
from wonderland.search.journal import Journal
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
    "Float",
    "GridSearch",
    "Hyperband",
    "Integer",
    "Job",
    "Journal",
    "RandomSearch",
    "Result",
    "Space",
    "Study",
    "SuccessiveHalving",
    "Trial",
    "Tuner",
    "best_trial",
    "confidence_bound",
    "expected_improvement",
    "importance",
    "make_tuner",
    "read_space",
    "render",
    "work",
]
