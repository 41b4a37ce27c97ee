"""Writing with a model: choosing tokens, searching, drafting, and keeping to a form."""

from wonderland.generation.beam import beam_search
from wonderland.generation.best_of import best_of, log_likelihood
from wonderland.generation.constraint import Constraint
from wonderland.generation.generate import generate, write
from wonderland.generation.grammar.json_schema import json_schema
from wonderland.generation.grammar.matching import Matching, matching
from wonderland.generation.rules import min_p, penalise, temper, top_k, top_p, typical
from wonderland.generation.sample import sample
from wonderland.generation.sampling import Sampling
from wonderland.generation.scheduled import mix_samples, truth_rate
from wonderland.generation.speculative import Speculated, speculate
from wonderland.generation.written import Token, Written

__all__ = [
    "Constraint",
    "Matching",
    "Sampling",
    "Speculated",
    "Token",
    "Written",
    "beam_search",
    "best_of",
    "generate",
    "json_schema",
    "log_likelihood",
    "matching",
    "min_p",
    "mix_samples",
    "penalise",
    "sample",
    "speculate",
    "temper",
    "top_k",
    "top_p",
    "truth_rate",
    "typical",
    "write",
]
