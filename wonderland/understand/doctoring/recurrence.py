"""Exploding recurrence: activations or gradients grow by a factor with every use of the same weights."""

from collections.abc import Iterator

import torch
from torch import Tensor

from wonderland.autodiff.tape import reverse
from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, TracedOp, is_finite, norm, rms

MIN_USES = 5
MAX_GROWTH = 100.0
MAX_EXPONENTIAL_GROWTH = 30.0  # where the growth is clearly exponential
HALF_GROWTH = 4.5  # of each half of the uses; quadratic growth would give 4 over the second half


def recurrence(trace: StepTrace) -> Iterator[Finding]:
    """Weights that are applied repeatedly in a chain, with activations or gradients that grow exponentially along it."""
    chains: dict[frozenset[str], list[TracedOp]] = {}
    for op in trace.layers:
        chain = chains.setdefault(op.weights, [])
        if not chain or op.depth > chain[-1].depth:
            chain.append(op)
    for weights, chain in chains.items():
        if len(chain) < MIN_USES:
            continue
        sizes = [rms(op.out.now) if is_finite(op.out.now) else float("inf") for op in chain]
        gradients = [trace.gradient_norm(op.out) or 0.0 for op in reversed(chain)]
        if _growth(gradients) > MAX_EXPONENTIAL_GROWTH:
            # Later uses may only get smaller gradients from the loss: what counts is one gradient on its way through all uses.
            alone = _through(trace, chain)
            gradients = alone if _growth(alone) < _growth(gradients) else gradients
        growth, quantity, series = max(
            (_growth(sizes), "Activations", sizes), (_growth(gradients), "Gradients", gradients)
        )
        # A sum over all uses grows linearly with their number, which is fine.
        if (growth > MAX_GROWTH and growth > 3 * len(chain)) or (
            growth > MAX_EXPONENTIAL_GROWTH and _exponential(series)
        ):
            rate = growth ** (1 / (len(chain) - 1)) if growth < float("inf") else growth
            name = sorted(weights)[0]
            yield trace.finding(
                "exploding recurrence", chain[0].step, rate,
                f"{quantity} grow {_times(growth)} over {len(chain)} uses of {name}"
                + (f", {rate:.2f} times per use." if rate < float("inf") else "."),
                "Make the recurrent weights orthogonal (nn.init.orthogonal_), use LSTM or GRU, and clip gradients to norm 1.",
            )  # fmt: skip
            return


def _through(trace: StepTrace, chain: list[TracedOp]) -> list[float]:
    """Norms at each use, from the last to the first, of a gradient that enters at the last use and nowhere else."""
    last = chain[-1].out
    assert last.now is not None
    places = {id(op.out): place for place, op in enumerate(reversed(chain))}
    sizes = [0.0] * len(chain)
    gradients: dict[int, Tensor] = {id(last): torch.ones_like(last.now)}
    with torch.no_grad():
        for index in range(chain[-1].index, chain[0].index - 1, -1):
            step = trace.recorder.steps[index]
            incoming = [gradients.pop(id(value), None) for value in step.outputs]
            if all(gradient is None for gradient in incoming):
                continue
            for value, gradient in zip(step.outputs, incoming, strict=True):
                if gradient is not None and id(value) in places:
                    sizes[places[id(value)]] = norm(gradient)
            for value, gradient in reverse(step, incoming, trace.differentiable):
                total = gradients.get(id(value))
                gradients[id(value)] = gradient if total is None else total + gradient
    return sizes


def _growth(sizes: list[float]) -> float:
    """The largest value divided by the first one that is not 0."""
    nonzero = [size for size in sizes if size > 0]
    if len(nonzero) < MIN_USES or not nonzero[0] < float("inf"):
        return 0.0
    worst = max(nonzero) if all(size == size for size in nonzero) else float("inf")
    return worst / max(nonzero[:2]) if max(nonzero[:2]) < float("inf") else float("inf")


def _exponential(sizes: list[float]) -> bool:
    """Whether both halves of the series grow by more than quadratic growth would."""
    nonzero = [size for size in sizes if 0 < size < float("inf")]
    middle, end = nonzero[len(nonzero) // 2], max(nonzero[len(nonzero) // 2 :])
    return len(nonzero) >= 2 * MIN_USES and end > HALF_GROWTH * middle and middle > HALF_GROWTH * nonzero[0]


def _times(number: float) -> str:
    return f"{number:.3g} times" if number < float("inf") else "without bound"
