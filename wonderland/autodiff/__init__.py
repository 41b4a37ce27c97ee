"""Derivatives of any torch program, as programs you can read."""

from wonderland.autodiff import chains, symbolic
from wonderland.autodiff.batching import vmap
from wonderland.autodiff.checkpointing import checkpoint
from wonderland.autodiff.functions import primitive
from wonderland.autodiff.numeric import numerical_derivative, numerical_gradient, numerical_jacobian
from wonderland.autodiff.rules.table import plain_rules, rule
from wonderland.autodiff.tangents import literal_forward, literal_reverse
from wonderland.autodiff.trace import Trace, call, parameters, trace
from wonderland.autodiff.transforms import (
    directional,
    grad,
    hessian,
    hvp,
    jacobian,
    jvp,
    linearize,
    stop_gradient,
    value_and_grad,
    vjp,
)

__all__ = [
    "Trace",
    "call",
    "chains",
    "checkpoint",
    "directional",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "literal_forward",
    "literal_reverse",
    "numerical_derivative",
    "numerical_gradient",
    "numerical_jacobian",
    "parameters",
    "plain_rules",
    "primitive",
    "rule",
    "stop_gradient",
    "symbolic",
    "trace",
    "value_and_grad",
    "vjp",
    "vmap",
]
