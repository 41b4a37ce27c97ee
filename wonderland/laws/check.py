"""check: try laws on any module, and say which hold."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from torch import nn

from wonderland.core import WonderlandError, nearest
from wonderland.laws.example import Example
from wonderland.laws.subject import LAWS, check_module
from wonderland.laws.verdict import Verdict, Verdicts

# What any module should do, and what is worth knowing of one that promises nothing.
EXPECTED = ("determinism", "batch_independence", "padding_invariance", "gradients", "finiteness", "save_load")
TRIED = ("causality", "streaming", "permutation_equivariance")


def check(
    module: nn.Module, example: Any = None, laws: str | Iterable[str | Callable[..., Verdict]] | None = None
) -> Verdicts:
    """Try laws on a module and return their verdicts; the module is left as it is.

    module: any torch module.
    example: a tensor, a tuple of arguments, or an `Example`; modules with a width `dim` need none.
    laws: names or functions. Default: what the module promises (`module.laws()`); for one that promises nothing, what any
        module should do, and, reported without being counted as broken, whether it is causal, streams, and sees order.

    >>> import torch
    >>> check(torch.nn.Linear(4, 4), torch.randn(2, 5, 4), ["causality"]).broken
    []
    """
    check_module(module)
    example = Example.of(example, module)
    promised, tried = _chosen(module, laws)
    verdicts = [law(module, example) for law in promised]
    return Verdicts(verdicts + [replace(law(module, example), promised=False) for law in tried])


def _chosen(module: nn.Module, laws: Any) -> tuple[list[Callable[..., Verdict]], list[Callable[..., Verdict]]]:
    if laws is not None:
        found = _listed(laws, "laws")
        if not found:
            raise WonderlandError(f"No law is named: name some of {', '.join(LAWS)}, or leave laws out.")
        return found, []
    own = getattr(module, "laws", None)
    if callable(own):
        return _listed(own(), f"laws() of {type(module).__name__}"), []
    return [LAWS[name] for name in EXPECTED], [LAWS[name] for name in TRIED]


def _listed(laws: Any, whose: str) -> list[Callable[..., Verdict]]:
    asked: Any = [laws] if isinstance(laws, str) or callable(laws) else laws
    if not isinstance(asked, Iterable):
        raise WonderlandError(f"{whose} must be names of laws or functions, not {laws!r}.")
    return [find(law) for law in asked]


def find(law: str | Callable[..., Verdict]) -> Callable[..., Verdict]:
    """A law by its name; a function is taken as it is."""
    if callable(law):
        return law
    if not isinstance(law, str) or law not in LAWS:
        known = ", ".join(LAWS)
        raise WonderlandError(f"There is no law {law!r}.{nearest(str(law), LAWS) or f' Laws are {known}.'}")
    return LAWS[law]
