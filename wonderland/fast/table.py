"""The table of fast forms, keyed by exact type.

A rule belongs to one class and not to its subclasses: a subclass that changes the equation has no entry here and runs in
plain torch by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from wonderland.fast.decode_program import Program


@dataclass(frozen=True)
class Rule:
    """The fast forms of one class; None for those that it does not have.

    - `step(module, program)` writes one token of a mixer into a decode program: the mixer reads the branch and adds to the
      stream. `residual` says that it reads the stream itself, as blocks and stacks do.
    - `norm(module, program)` writes a norm: from the stream into the branch.
    - `norm_form(module)`: gain, shift, eps and whether the mean is subtracted, for kernels that contain the norm.
    - `images(module, x)` is `module(x)` for maps (b, c, h, w) in use, without gradients, or None where that does not fit.
    - `fuse(module, norm, x)` is `x + module(norm(x))` over whole sequences by one kernel, or None where that does not fit.
    """

    step: Callable[[Any, Program], bool] | None = None
    residual: bool = False
    norm: Callable[[Any, Program], bool] | None = None
    norm_form: Callable[[Any], Any] | None = None
    fuse: Callable[[Any, Any, Any], Any] | None = None
    images: Callable[[Any, Any], Any] | None = None


RULES: dict[type, Rule] = {}
NO_RULE = Rule()


def register(kind: type, rule: Rule) -> None:
    """Enter the rule of a class; one rule for each class."""
    assert kind not in RULES, f"{kind.__name__} has a rule already"
    RULES[kind] = rule


def rule_of(module: nn.Module | None) -> Rule:
    """The rule of a module's exact type, or an empty one."""
    return RULES.get(type(module), NO_RULE)


def write_step(module: Any, program: Program) -> bool:
    """Write one token of a module into a program; False if it has no such form."""
    step = rule_of(module).step
    return step is not None and step(module, program)


def write_norm(module: Any, program: Program) -> bool:
    """Write a norm into a program; False if it has no such form."""
    norm = rule_of(module).norm
    return norm is not None and norm(module, program)
