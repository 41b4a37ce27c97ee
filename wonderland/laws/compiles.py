"""Compiles: torch.compile takes the block in one piece and gives its answers."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jaxtyping
import torch

from wonderland.laws.compare import apart, gap, slopes
from wonderland.laws.subject import OWN, Failed, Subject, law
from wonderland.laws.verdict import Verdict


@law(dtype=OWN)
def compiles(subject: Subject, *, backend: str = "aot_eager") -> Verdict:
    """`torch.compile(block, fullgraph=True)` works without a break of the graph; outputs and gradients stay.

    Outputs may differ by rounding: 1e-12 of the largest in float64, 1e-5 in float32; gradients by 100 times that, as
    their sums are taken in another order.
    """
    leaves = subject.parameters()
    x = subject.x.clone().requires_grad_(subject.x.is_floating_point() or subject.x.is_complex())
    names, values = [name for name, _ in leaves], [value for _, value in leaves]
    if x.requires_grad:
        names, values = ["the input", *names], [x, *values]
    plain = subject.run(x)
    weights = subject.noise(plain.detach())
    expected = slopes(plain, weights, values)
    whole = subject.block
    with _compiling():
        try:
            subject.block = torch.compile(whole, fullgraph=True, backend=backend, dynamic=False)  # pyright: ignore[reportAttributeAccessIssue]
            found = subject.run(x)
            reached = slopes(found, weights, values)
        except Failed as fault:
            raise Failed(_reason(fault.__cause__ or fault)) from fault
        except Exception as fault:
            raise Failed(_reason(fault)) from fault
        finally:
            subject.block = whole
    error, amount, place = gap(found, plain)
    tolerance = 1e-12 if subject.precise else 1e-5
    if not error <= tolerance:
        return subject.verdict(error, tolerance, f"{subject.place(place)} differs by {amount:.2g} when compiled")
    far, index = apart(reached, expected)
    if not far <= 100 * tolerance:
        return subject.verdict(far, 100 * tolerance, f"the gradient by {names[index]} differs when compiled")
    return subject.verdict(error, tolerance)


@contextmanager
def _compiling() -> Iterator[None]:
    # The compiler cannot read run-time checks of shapes, nor the decorator that adds them to inner functions; and it counts
    # blocks of one class as one function compiled again and again.
    config, decorator = jaxtyping.config, jaxtyping.jaxtyped
    checked = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    jaxtyping.jaxtyped = _plain
    limits = torch._dynamo.config.patch(recompile_limit=10_000, accumulated_recompile_limit=100_000)
    try:
        with limits, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what the compiler says of itself is not the block's doing
            yield
    finally:
        config.update("jaxtyping_disable", checked)
        jaxtyping.jaxtyped = decorator


def _plain(*_: Any, **__: Any) -> Any:
    return lambda function: function


def _reason(error: BaseException) -> str:
    """The compiler's complaint in one line: what it met, and where."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    why = next((line for line in lines if line.startswith("Explanation:")), "")
    where = [line for line in lines if line.startswith("File ")]
    spot = f", at {where[-1].removeprefix('File ')}" if where else ""
    return (
        f"it does not compile: {lines[0]}{' (' + why.removeprefix('Explanation:').strip() + ')' if why else ''}{spot}"
    )
