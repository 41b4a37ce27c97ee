"""Recurrences that explode: the same weights, used again and again, multiply activations or gradients each time."""

from collections.abc import Iterator

from wonderland.understand.doctoring.exam import Exam, Moment, finite, rms
from wonderland.understand.doctoring.finding import Finding

USES = 5
GROWTH, STEADY = 100.0, 30.0
HALF = 4.5  # a square of the number of uses would grow by 4 over the second half


def recurrence(exam: Exam) -> Iterator[Finding]:
    """Weights that are used in a chain, with numbers or gradients that grow along it by a factor a use."""
    chains: dict[frozenset[str], list[Moment]] = {}
    for m in exam.layers:
        chain = chains.setdefault(m.weights, [])
        if not chain or m.depth > chain[-1].depth:
            chain.append(m)
    for weights, chain in chains.items():
        if len(chain) < USES:
            continue
        sizes = [rms(m.out.now) if finite(m.out.now) else float("inf") for m in chain]
        slopes = [exam.slope(m.out) or 0.0 for m in reversed(chain)]
        grown, what, course = max((_growth(sizes), "Activations", sizes), (_growth(slopes), "Gradients", slopes))
        # A sum over all uses grows like their number without being ill.
        if (grown > GROWTH and grown > 3 * len(chain)) or (grown > STEADY and _steady(course)):
            rate = grown ** (1 / (len(chain) - 1)) if grown < float("inf") else grown
            name = sorted(weights)[0]
            yield exam.finding(
                "exploding recurrence", chain[0].step, rate,
                f"{what} grow {_times(grown)} over {len(chain)} uses of {name}"
                + (f", {rate:.2f} times a use." if rate < float("inf") else "."),
                "Make the recurrent weights orthogonal (nn.init.orthogonal_), use LSTM or GRU, and clip gradients to norm 1.",
            )  # fmt: skip
            return


def _growth(sizes: list[float]) -> float:
    """How much the largest is above the first that is not 0."""
    alive = [size for size in sizes if size > 0]
    if len(alive) < USES or not alive[0] < float("inf"):
        return 0.0
    worst = max(alive) if all(size == size for size in alive) else float("inf")
    return worst / max(alive[:2]) if max(alive[:2]) < float("inf") else float("inf")


def _steady(sizes: list[float]) -> bool:
    """Whether growth goes on by a factor a use: as much in the second half as a power of the count could not."""
    alive = [size for size in sizes if 0 < size < float("inf")]
    middle, end = alive[len(alive) // 2], max(alive[len(alive) // 2 :])
    return len(alive) >= 2 * USES and end > HALF * middle and middle > HALF * alive[0]


def _times(number: float) -> str:
    return f"{number:.3g} times" if number < float("inf") else "beyond all numbers"
