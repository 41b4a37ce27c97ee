"""Compiles: torch.compile captures the block as one graph, with the same outputs and gradients."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jaxtyping
import torch

from wonderland.laws.compare import gap, gradient_gap, weighted_gradients
from wonderland.laws.subject import BLOCK_DTYPE, Failed, Subject, law
from wonderland.laws.verdict import Verdict


@law(dtype=BLOCK_DTYPE)
def compiles(subject: Subject, *, backend: str = "aot_eager") -> Verdict:
    """`torch.compile(block, fullgraph=True)` works without a graph break; outputs and gradients are the same.

    Outputs may differ by rounding: 1e-12 of the largest in float64, 1e-5 in float32; gradients by 100 times that, as
    their sums are taken in another order.
    """
    leaves = subject.parameters()
    x = subject.x.clone().requires_grad_(subject.x.is_floating_point() or subject.x.is_complex())
    names, values = [name for name, _ in leaves], [value for _, value in leaves]
    if x.requires_grad:
        names, values = ["the input", *names], [x, *values]
    eager = subject.run(x)
    weights = subject.noise(eager.detach())
    expected = weighted_gradients(eager, weights, values)
    block = subject.block
    with _compiler_settings():
        try:
            subject.block = torch.compile(block, fullgraph=True, backend=backend, dynamic=False)  # pyright: ignore[reportAttributeAccessIssue]
            compiled = subject.run(x)
            gradients = weighted_gradients(compiled, weights, values)
        except Failed as fault:
            raise Failed(_reason(fault.__cause__ or fault)) from fault
        except Exception as fault:
            raise Failed(_reason(fault)) from fault
        finally:
            subject.block = block
    error, amount, place = gap(compiled, eager)
    tolerance = 1e-12 if subject.precise else 1e-5
    if not error <= tolerance:
        return subject.verdict(error, tolerance, f"{subject.place(place)} differs by {amount:.2g} when compiled")
    gradient_error, index = gradient_gap(gradients, expected)
    if not gradient_error <= 100 * tolerance:
        return subject.verdict(gradient_error, 100 * tolerance, f"the gradient by {names[index]} differs when compiled")
    return subject.verdict(error, tolerance)


@contextmanager
def _compiler_settings() -> Iterator[None]:
    # torch.compile cannot trace jaxtyping's run-time checks or its decorator on inner functions, so both are disabled. All
    # blocks of one class count as recompilations of one function, so the limits on those are raised.
    config, decorator = jaxtyping.config, jaxtyping.jaxtyped
    was_disabled = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    jaxtyping.jaxtyped = _no_decoration
    limits = torch._dynamo.config.patch(recompile_limit=10_000, accumulated_recompile_limit=100_000)
    try:
        with limits, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of the compiler are not the block's
            yield
    finally:
        config.update("jaxtyping_disable", was_disabled)
        jaxtyping.jaxtyped = decorator


def _no_decoration(*_: Any, **__: Any) -> Any:
    return lambda function: function


def _reason(error: BaseException) -> str:
    """The compiler's error in one line: what it could not compile, and where."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    why = next((line for line in lines if line.startswith("Explanation:")), "")
    where = [line for line in lines if line.startswith("File ")]
    spot = f", at {where[-1].removeprefix('File ')}" if where else ""
    return (
        f"it does not compile: {lines[0]}{' (' + why.removeprefix('Explanation:').strip() + ')' if why else ''}{spot}"
    )
