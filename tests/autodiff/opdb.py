"""How much of PyTorch's operator database is covered: python -m tests.autodiff.opdb prints the counts.

Each entry that supports gradients is called on its first sample inputs, in float64 if not told otherwise; what autodiff gives is compared with
torch, through the wrapper that torch's own gradient tests use: inputs that are read as symmetric are made so. Verdicts:
equal; refused (a WonderlandError that names the primitive); truer (differs from torch, and central differences agree with
autodiff and not with torch); wrong (anything else). Left out is what torch cannot do itself, and inputs that are sparse.
"""

import argparse
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

os.environ.setdefault("PYTORCH_TEST_WITH_SLOW", "0")

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from wonderland import autodiff
from wonderland.core import WonderlandError

EQUAL, REFUSED, TRUER, WRONG, SKIPPED = "equal", "refused", "truer", "wrong", "left out"


class TorchCannot(Exception):
    """Torch does not differentiate this entry itself, so there is nothing to compare with."""


@contextmanager
def torchs() -> Iterator[None]:
    """What fails in here is torch's."""
    try:
        yield
    except Exception as error:
        raise TorchCannot(str(error)) from error


def database() -> list[Any]:
    """The entries of torch's own tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    return list(op_db)


def sample(entry: Any, dtype: torch.dtype = torch.float64) -> Any:
    """The first sample of an entry."""
    torch.manual_seed(0)
    return next(iter(entry.sample_inputs("cpu", dtype, requires_grad=True)), None)


def split(entry: Any, given: Any) -> tuple[Callable[..., Any], list[Tensor], list[Tensor]]:
    """A function of the differentiable inputs alone, to a list of differentiable outputs; and those inputs, twice."""
    flat, nesting = tree_flatten((given.input, given.args, given.kwargs))
    places = [k for k, value in enumerate(flat) if isinstance(value, Tensor) and value.requires_grad]
    plain = [value.detach() if isinstance(value, Tensor) else value for value in flat]

    def function(*inputs: Tensor) -> list[Tensor]:
        torch.manual_seed(1)
        whole = list(plain)
        for place, value in zip(places, inputs, strict=True):
            whole[place] = value
        first, args, kwargs = tree_unflatten(whole, nesting)
        out = entry.gradcheck_wrapper(entry.op, first, *args, **kwargs)
        if given.output_process_fn_grad is not None:
            out = given.output_process_fn_grad(out)
        return [
            one
            for one in tree_flatten(out)[0]
            if isinstance(one, Tensor) and (one.is_floating_point() or one.is_complex())
        ]

    return function, [flat[k].detach().clone() for k in places], [flat[k].detach().clone() for k in places]


def cotangents(outputs: list[Tensor], seed: int = 2) -> list[Tensor]:
    """Random weights of the outputs."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for out in outputs:
        drawn = torch.randn(out.shape, generator=generator, dtype=torch.float64)
        if out.is_complex():
            drawn = torch.complex(drawn, torch.randn(out.shape, generator=generator, dtype=torch.float64))
        found.append(drawn.to(out.dtype))
    return found


def same(ours: list[Any], theirs: list[Any], tolerance: float = 1e-8) -> bool:
    """Whether gradients agree; None and zeros are the same."""
    for one, other in zip(ours, theirs, strict=True):
        other = torch.zeros_like(one) if other is None else other
        if one.shape != other.shape:
            return False
        if not torch.allclose(one, other.to(one.dtype), rtol=1e-6, atol=tolerance, equal_nan=True):
            return False
    return True


def _torch_gradients(
    function: Any, inputs: list[Tensor], create: bool = False
) -> tuple[list[Tensor], list[Any], list[int]]:
    leaves = [value.requires_grad_() for value in inputs]
    outputs = function(*leaves)
    live = [k for k, out in enumerate(outputs) if out.requires_grad]
    weights = cotangents([out.detach() for out in outputs])
    ends, starts = [outputs[k] for k in live], [weights[k] for k in live]
    if not live:
        return [], [None] * len(leaves), []
    found = torch.autograd.grad(ends, leaves, starts, allow_unused=True, create_graph=create)
    return starts, list(found), live


def limit(function: Any, inputs: list[Tensor], moves: list[Tensor], step: float = 1e-6) -> list[Tensor]:
    """How the outputs move along a direction, by central differences."""
    ahead = function(*[x + step * move for x, move in zip(inputs, moves, strict=True)])
    behind = function(*[x - step * move for x, move in zip(inputs, moves, strict=True)])
    return [(one - other) / (2 * step) for one, other in zip(ahead, behind, strict=True)]


def _paired(some: list[Any], others: list[Any]) -> Tensor:
    terms = [
        (a.conj() * b).real.sum() if a.is_complex() else (a * b).sum()
        for a, b in zip(some, others, strict=True)
        if a is not None
    ]
    return sum((term.to(torch.float64) for term in terms), torch.zeros((), dtype=torch.float64))


def compared(
    ours: list[Any], theirs: list[Any], arbiter: Callable[[], tuple[Any, Any, Any]], loose: float = 1e-8
) -> str:
    """The verdict on numbers; of ours, torch's and the limit, the arbiter gives what is to be compared."""
    if same(ours, theirs, loose):
        return EQUAL
    one, other, true = arbiter()
    near = [torch.allclose(x, true, rtol=1e-5, atol=1e-6) for x in (one, other)]
    return TRUER if near == [True, False] else WRONG


def reverse(entry: Any, given: Any) -> str:
    function, ours, theirs = split(entry, given)
    with torchs():
        weights, expected, live = _torch_gradients(function, theirs)
    chosen = lambda *x: [function(*x)[k] for k in live]  # noqa: E731
    _, pullback = autodiff.vjp(chosen, *ours)
    found = list(pullback(weights))
    moves = cotangents(ours, seed=3)

    def arbiter() -> tuple[Any, Any, Any]:
        return _paired(found, moves), _paired(expected, moves), _paired(weights, limit(chosen, ours, moves))

    return compared(found, expected, arbiter)


def forward(entry: Any, given: Any) -> str:
    """Outputs that torch's autograd does not differentiate, like saved means, are not compared."""
    function, ours, theirs = split(entry, given)
    moves = cotangents(ours, seed=3)
    with torchs():
        *_, live = _torch_gradients(function, [x.clone() for x in theirs])
        with torch.autograd.forward_ad.dual_level():
            duals = [torch.autograd.forward_ad.make_dual(x, v) for x, v in zip(theirs, moves, strict=True)]
            outputs = function(*duals)
            unpacked = [torch.autograd.forward_ad.unpack_dual(outputs[k]).tangent for k in live]
            expected = [None if one is None else one.clone() for one in unpacked]
    _, found = autodiff.jvp(function, tuple(ours), tuple(moves))
    weights = cotangents([found[k] for k in live])

    def arbiter() -> tuple[Any, Any, Any]:
        true = limit(function, ours, moves)
        some = [(w, one) for w, one in zip(weights, expected, strict=True) if one is not None]
        their = _paired([w for w, _ in some], [one for _, one in some])
        return _paired(weights, [found[k] for k in live]), their, _paired(weights, [true[k] for k in live])

    return compared([found[k] for k in live], expected, arbiter)


def second(entry: Any, given: Any) -> str:
    function, ours, theirs = split(entry, given)
    with torchs():
        weights, first, live = _torch_gradients(function, theirs, create=True)
        kept = [k for k, gradient in enumerate(first) if gradient is not None]
        assert kept, "no input has a gradient"
        more = cotangents([first[k].detach() for k in kept], seed=4)
        total = [(first[k], w) for k, w in zip(kept, more, strict=True) if first[k].requires_grad]
        expected: list[Any] = [None] * len(theirs)
        if total:
            ends, starts = [a for a, _ in total], [b for _, b in total]
            expected = list(torch.autograd.grad(ends, theirs, starts, allow_unused=True))

    def gradients(*x: Tensor) -> list[Tensor]:
        _, pullback = autodiff.vjp(lambda *x: [function(*x)[k] for k in live], *x)
        found = pullback(weights)
        return [found[k] for k in kept]

    _, pullback = autodiff.vjp(gradients, *ours)
    found = list(pullback(more))
    moves = cotangents(ours, seed=3)

    def arbiter() -> tuple[Any, Any, Any]:
        return _paired(found, moves), _paired(expected, moves), _paired(more, limit(gradients, ours, moves))

    return compared(found, expected, arbiter, 1e-7)


KINDS = {
    "reverse": (reverse, "supports_autograd"),
    "forward": (forward, "supports_forward_ad"),
    "second": (second, "supports_gradgrad"),
}


def judged(
    kind: str, names: Collection[str] | None = None, dtype: torch.dtype = torch.float64
) -> Iterator[tuple[str, str, str]]:
    """(entry, verdict, reason) for each entry that torch differentiates this way."""
    check, supports = KINDS[kind]
    for entry in database():
        name = entry.name + (f".{entry.variant_test_name}" if entry.variant_test_name else "")
        if names and name not in names:
            continue
        if not entry.supports_autograd or not getattr(entry, supports) or not entry.supports_dtype(dtype, "cpu"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            verdict = _verdict(check, entry, dtype)
        yield name, *verdict


def _verdict(check: Callable[[Any, Any], str], entry: Any, dtype: torch.dtype) -> tuple[str, str]:
    given = sample(entry, dtype)
    if given is None:
        return SKIPPED, "it has no sample"
    tensors = [x for x in tree_flatten((given.input, given.args, given.kwargs))[0] if isinstance(x, Tensor)]
    if not any(x.requires_grad for x in tensors):
        return SKIPPED, "its first sample has nothing to differentiate by"
    if any(x.layout != torch.strided for x in tensors):
        return SKIPPED, "its inputs are sparse"
    try:
        return check(entry, given), ""
    except WonderlandError as error:
        return REFUSED, str(error)
    except TorchCannot as error:
        return SKIPPED, f"torch: {error}"[:300]
    except Exception as error:
        return WRONG, f"{type(error).__name__}: {error}"[:300]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--tell", action="store_true", help="each entry that is not equal")
    options = parser.parse_args()
    for kind in options.kinds or KINDS:
        counts: Counter[str] = Counter()
        for name, verdict, reason in judged(kind, options.only):
            counts[verdict] += 1
            if options.tell and verdict != EQUAL:
                print(f"  {kind} {verdict}: {name} {reason}", flush=True)
        print(kind, dict(counts), flush=True)


if __name__ == "__main__":
    sys.exit(main())
