"""Signals on their way: activations that explode or fade with depth, gradients that vanish, units that saturate."""

from collections.abc import Iterator
from math import exp, log

from wonderland.understand.doctoring.exam import Exam, Moment, finite, rms, signal, wide
from wonderland.understand.doctoring.finding import Finding

STARVED = 1e-3  # the first layer's share of the largest layer's gradient
FADED = 1e-3  # deviation between examples, against that of the first layer's input
LARGE = 30.0  # size of what a layer is given, against the batch's
SATURATED = 0.5  # share of numbers at the flat ends


def signals(exam: Exam) -> Iterator[Finding]:
    """What is wrong with the sizes of activations and gradients along depth."""
    layers = [m for m in exam.layers if finite(m.out.now) and m.source is not None and finite(m.source.now)]
    if not layers:
        return
    found = list(_large(exam, layers)) or list(_starved(exam, layers))
    yield from found
    if not any(one.illness == "vanishing gradients" for one in found):
        yield from _saturated(exam)


def _large(exam: Exam, layers: list[Moment]) -> Iterator[Finding]:
    sizes = [rms(tensor) for tensor in exam.batch.values() if tensor.is_floating_point()]
    base = max([1.0, *sizes])
    given = [(rms(m.source.now) if m.source else 0.0, m) for m in layers]
    end = rms(exam.answer.now) if exam.answer is not None and exam.answer.smooth and exam.targets is not None else 0.0
    if exam.targets is not None and getattr(exam.targets, "is_floating_point", lambda: False)():
        end /= max(1.0, rms(exam.targets))
    largest = max([end, *(size for size, _ in given)]) / base
    if largest <= LARGE:
        return
    worst = _extreme(layers, 1)
    gain = worst.gain or 0.0
    yield exam.finding(
        "exploding activations", worst.step, largest,
        f"Activations grow to {largest:.3g} times the size of the input; this layer alone multiplies by {gain:.3g}.",
        "Initialise its weights with deviation sqrt(2 / inputs) (nn.init.kaiming_normal_), or put a norm after it.",
    )  # fmt: skip


def _starved(exam: Exam, layers: list[Moment]) -> Iterator[Finding]:
    share = _share(exam)
    first, last = layers[0], layers[-1]
    base = min(1.0, signal(first.source.now, -1)) if first.source is not None else 1.0
    # Weights that are used several times, as in a recurrence, are judged by the use that sees most.
    fades: dict[frozenset[str], float] = {}
    for m in layers:
        if m.source is not None and base > 0:
            fades[m.weights] = max(fades.get(m.weights, 0.0), signal(m.source.now, _axis(m)) / base)
    faded = min((one for one in fades.values() if one > 0), default=1.0)
    share = 1.0 if share is None else share
    if share >= STARVED and faded >= FADED:
        return
    falls = {m.index: -log(m.passed) for m in (*exam.layers, *exam.bends) if m.passed}
    bent = sum(max(0.0, falls.get(m.index, 0.0)) for m in exam.bends)
    weighed = sum(max(0.0, falls.get(m.index, 0.0)) for m in exam.layers)
    if bent > weighed and exam.bends:
        worst = max(falls.get(m.index, 0.0) for m in exam.bends)
        site = next(m for m in exam.bends if falls.get(m.index, 0.0) > 0.5 * worst)
        kept = exp(-worst)
        guilty = [m for m in exam.bends if falls.get(m.index, 0.0) > 0.5 * worst]
        yield exam.finding(
            "vanishing gradients", site.step, min(share, faded),
            (f"The first layer's gradient is {share:.2g} of the largest layer's. " if share < STARVED
             else f"Examples differ by {faded:.2g} of what they did at the input. ") +
            f"{len(guilty)} steps of {site.name} each let about {kept:.2g} of the gradient through.",
            "Use ReLU or GELU in the place of " + site.name + ", or add residual connections, or a norm before each.",
        )  # fmt: skip
        return
    worst = _extreme([m for m in layers if m.index <= last.index], -1)
    yield exam.finding(
        "vanishing activations", worst.step, min(share, faded),
        f"Examples differ by {faded:.2g} of what they did at the input; this layer multiplies that by {_kept(worst) or 0.0:.2g}.",
        "Initialise with deviation sqrt(2 / inputs) before ReLU, sqrt(1 / inputs) before tanh, or add norms or residuals.",
    )  # fmt: skip


def _share(exam: Exam) -> float | None:
    """The first layer's worth over the largest worth after it: size of the weights times size of their gradient."""
    depth: dict[str, int] = {}
    for m in exam.moments:
        for name in m.weights & exam.trainable:
            depth.setdefault(name, m.depth)
    worth: dict[int, float] = {}
    for name, at in depth.items():
        slope = exam.gradients[name]
        if slope is not None:
            worth[at] = max(
                worth.get(at, 0.0), rms(slope) * slope.numel() ** 0.5 * rms(exam.numbers[name]) * slope.numel() ** 0.5
            )
    if len(worth) < 2:
        return None
    first = min(worth)
    largest = max(size for at, size in worth.items() if at > first)
    return worth[first] / largest if largest > 0 and worth[first] > 0 else None


def _axis(m: Moment) -> int:
    return 1 if m.name == "convolution" else -1


def _extreme(layers: list[Moment], side: int) -> Moment:
    """The first of the layers that multiply most (side 1) or, seen between examples, least (side -1), or nearly so."""
    gains = {m.index: side * log(gain) for m in layers if (gain := m.gain if side > 0 else _kept(m))}
    if not gains:
        return layers[0]
    most = max(gains.values())
    return next(m for m in layers if gains.get(m.index, -1e9) >= most - log(2))


def _kept(m: Moment) -> float | None:
    """How much of the difference between examples a layer hands on; a bias has no part in it."""
    before = signal(m.source.now, _axis(m)) if m.source is not None else 0.0
    return signal(m.out.now, m.axis) / before if before else None


def _saturated(exam: Exam) -> Iterator[Finding]:
    worst: tuple[float, Moment] | None = None
    for m in exam.bends:
        share = saturation(m)
        if share > SATURATED and (worst is None or share > worst[0] + 0.1):
            worst = (share, m)
    if worst is None:
        return
    share, m = worst
    size = rms(m.source.now) if m.source is not None else 0.0
    yield exam.finding(
        "saturated units", m.step, share,
        f"{share:.0%} of the outputs of {m.name} are at its flat ends, where no gradient passes; its inputs have size {size:.3g}.",
        "Make its inputs smaller: scale the data to deviation 1, initialise with smaller weights, or put a norm before it.",
    )  # fmt: skip


def saturation(m: Moment) -> float:
    """The share of a sigmoid's or tanh's outputs that are within 1% of an end."""
    if m.name not in ("sigmoid", "tanh") or m.out.now is None or not m.out.now.numel():
        return 0.0
    low = -1.0 if m.name == "tanh" else 0.0
    share = (wide(m.out.now) - low) / (1.0 - low)
    return float(((share < 0.005) | (share > 0.995)).double().mean())
