"""check: test laws on any module and report which hold."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from torch import nn

from wonderland.core import WonderlandError, nearest
from wonderland.laws.example import Example
from wonderland.laws.subject import LAWS, check_module
from wonderland.laws.verdict import Verdict, Verdicts

# For a module without `laws()`: laws that any module should keep, and laws that are only reported.
EXPECTED = ("determinism", "batch_independence", "padding_invariance", "gradients", "finiteness", "save_load")
REPORTED = ("causality", "streaming", "permutation_equivariance")


def check(
    module: nn.Module, example: Any = None, laws: str | Iterable[str | Callable[..., Verdict]] | None = None
) -> Verdicts:
    """Check laws on a module and return their verdicts; the module is not changed.

    module: any torch module.
    example: a tensor, a tuple of arguments, or an `Example`; modules with a width `dim` need none.
    laws: names or functions. Default: the laws that the module claims (`module.laws()`). For a module without `laws()`, those
        that any module should keep; causality, streaming and permutation equivariance are reported and not counted as
        broken.

    >>> import torch
    >>> check(torch.nn.Linear(4, 4), torch.randn(2, 5, 4), ["causality"]).broken
    []
    """
    check_module(module)
    example = Example.of(example, module)
    claimed, reported = _laws_to_check(module, laws)
    verdicts = [law(module, example) for law in claimed]
    return Verdicts(verdicts + [replace(law(module, example), promised=False) for law in reported])


def _laws_to_check(module: nn.Module, laws: Any) -> tuple[list[Callable[..., Verdict]], list[Callable[..., Verdict]]]:
    if laws is not None:
        requested = _listed(laws, "laws")
        if not requested:
            raise WonderlandError(f"No law is named: name some of {', '.join(LAWS)}, or leave laws out.")
        return requested, []
    claims = getattr(module, "laws", None)
    if callable(claims):
        return _listed(claims(), f"laws() of {type(module).__name__}"), []
    return [LAWS[name] for name in EXPECTED], [LAWS[name] for name in REPORTED]


def _listed(laws: Any, source: str) -> list[Callable[..., Verdict]]:
    entries: Any = [laws] if isinstance(laws, str) or callable(laws) else laws
    if not isinstance(entries, Iterable):
        raise WonderlandError(f"{source} must be names of laws or functions, not {laws!r}.")
    return [find(law) for law in entries]


def find(law: str | Callable[..., Verdict]) -> Callable[..., Verdict]:
    """A law by its name; a function is returned as it is."""
    if callable(law):
        return law
    if not isinstance(law, str) or law not in LAWS:
        known = ", ".join(LAWS)
        raise WonderlandError(f"There is no law {law!r}.{nearest(str(law), LAWS) or f' Laws are {known}.'}")
    return LAWS[law]
