"""Recommenders: scores of items for a user and what the user chose before."""

from wonderland.models.recommend.als import implicit_als
from wonderland.models.recommend.autorec import AutoRec
from wonderland.models.recommend.base import Recommender
from wonderland.models.recommend.caser import Caser
from wonderland.models.recommend.factorisation import MatrixFactorisation
from wonderland.models.recommend.machine import DeepFM, FactorisationMachine
from wonderland.models.recommend.neighbours import item_neighbours
from wonderland.models.recommend.neumf import NeuMF
from wonderland.models.recommend.rating_als import RatingFactors, rating_als
from wonderland.models.recommend.sequence import SequenceRecommender

__all__ = [
    "AutoRec",
    "Caser",
    "DeepFM",
    "FactorisationMachine",
    "MatrixFactorisation",
    "NeuMF",
    "RatingFactors",
    "Recommender",
    "SequenceRecommender",
    "implicit_als",
    "item_neighbours",
    "rating_als",
]
