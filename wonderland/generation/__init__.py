"""Generation: sampling, beam search, speculative decoding, and text under constraints."""

from wonderland.generation.beam import beam_search
from wonderland.generation.best_of import best_of, log_likelihood
from wonderland.generation.constraint import Constraint
from wonderland.generation.generate import generate, write
from wonderland.generation.generated import Generated, Token
from wonderland.generation.grammar.json_schema import json_schema
from wonderland.generation.grammar.matching import Matching, matching
from wonderland.generation.rules import apply_temperature, min_p, penalize_repetition, top_k, top_p, typical
from wonderland.generation.sample import sample
from wonderland.generation.sampling import Sampling
from wonderland.generation.scheduled import scheduled_sampling, teacher_forcing_rate
from wonderland.generation.speculative import Speculated, speculate

__all__ = [
    "Constraint",
    "Generated",
    "Matching",
    "Sampling",
    "Speculated",
    "Token",
    "apply_temperature",
    "beam_search",
    "best_of",
    "generate",
    "json_schema",
    "log_likelihood",
    "matching",
    "min_p",
    "penalize_repetition",
    "sample",
    "scheduled_sampling",
    "speculate",
    "teacher_forcing_rate",
    "top_k",
    "top_p",
    "typical",
    "write",
]
