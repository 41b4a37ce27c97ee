"""Writing with a model: choosing tokens, searching, drafting, and keeping to a form."""

from wonderland.models.generation.beam import beam_search
from wonderland.models.generation.best_of import best_of, log_likelihood
from wonderland.models.generation.constraint import Constraint
from wonderland.models.generation.generate import generate, write
from wonderland.models.generation.grammar.json_schema import json_schema
from wonderland.models.generation.grammar.matching import Matching, matching
from wonderland.models.generation.rules import min_p, penalise, temper, top_k, top_p, typical
from wonderland.models.generation.sampling import Sampling
from wonderland.models.generation.scheduled import mix_samples, truth_rate
from wonderland.models.generation.speculative import Speculated, speculate
from wonderland.models.generation.written import Token, Written

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
    "speculate",
    "temper",
    "top_k",
    "top_p",
    "truth_rate",
    "typical",
    "write",
]
