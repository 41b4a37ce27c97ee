"""Layers that are defined by an equation they solve, and gradients that are cut at random or copied straight through."""

from wonderland.nn.implicit.equilibrium import Equilibrium
from wonderland.nn.implicit.neural_ode import NeuralODE, odeint
from wonderland.nn.implicit.quantise import VectorQuantiser
from wonderland.nn.implicit.truncation import RandomTruncation

__all__ = ["Equilibrium", "NeuralODE", "RandomTruncation", "VectorQuantiser", "odeint"]
