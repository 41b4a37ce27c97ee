"""Writing with a model: choosing tokens, searching, drafting, and keeping to a form."""

from wonderland.models.generation.constraint import Constraint
from wonderland.models.generation.generate import generate, write
from wonderland.models.generation.rules import min_p, penalise, temper, top_k, top_p, typical
from wonderland.models.generation.sampling import Sampling
from wonderland.models.generation.written import Token, Written

__all__ = [
    "Constraint",
    "Sampling",
    "Token",
    "Written",
    "generate",
    "min_p",
    "penalise",
    "temper",
    "top_k",
    "top_p",
    "typical",
    "write",
]
