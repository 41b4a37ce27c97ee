"""Signal propagation: exploding or vanishing activations, vanishing gradients, saturated units."""

from collections.abc import Iterator
from math import exp, log

from wonderland.understand.doctoring.finding import Finding
from wonderland.understand.doctoring.trace import StepTrace, TracedOp, is_finite, rms, spread, to_double

MIN_GRADIENT = 1e-3  # of the first layer, relative to the largest layer
MIN_SPREAD = 1e-3  # of the examples at the input of a layer, relative to the first layer
MAX_RMS = 30.0  # RMS of the input of a layer, relative to the batch
MAX_SATURATED = 0.5  # share of saturated outputs


def propagation(trace: StepTrace) -> Iterator[Finding]:
    """Activations or gradients that grow or shrink too much with depth."""
    layers = [op for op in trace.layers if is_finite(op.out.now) and op.source is not None and is_finite(op.source.now)]
    if not layers:
        return
    findings = list(_exploding(trace, layers)) or list(_vanishing(trace, layers))
    yield from findings
    if not any(finding.problem == "vanishing gradients" for finding in findings):
        yield from _saturated(trace)


def _exploding(trace: StepTrace, layers: list[TracedOp]) -> Iterator[Finding]:
    sizes = [rms(tensor) for tensor in trace.batch.values() if tensor.is_floating_point()]
    batch_rms = max([1.0, *sizes])
    layer_inputs = [(rms(op.source.now) if op.source else 0.0, op) for op in layers]
    output_rms = (
        rms(trace.output_value.now)
        if trace.output_value is not None and trace.output_value.smooth and trace.targets is not None
        else 0.0
    )
    if trace.targets is not None and getattr(trace.targets, "is_floating_point", lambda: False)():
        output_rms /= max(1.0, rms(trace.targets))
    largest = max([output_rms, *(size for size, _ in layer_inputs)]) / batch_rms
    if largest <= MAX_RMS:
        return
    worst = _extreme(layers, 1)
    gain = worst.gain or 0.0
    yield trace.finding(
        "exploding activations", worst.step, largest,
        f"The RMS of activations grows to {largest:.3g} times that of the input; this layer alone multiplies it by {gain:.3g}.",
        "Initialise its weights with standard deviation sqrt(2 / fan_in) (nn.init.kaiming_normal_), or put a norm after it.",
    )  # fmt: skip


def _vanishing(trace: StepTrace, layers: list[TracedOp]) -> Iterator[Finding]:
    relative_gradient = _relative_gradient(trace)
    first, last = layers[0], layers[-1]
    input_spread = min(1.0, spread(first.source.now, -1)) if first.source is not None else 1.0
    # Of weights that are used several times, as in a recurrence, the use with the largest spread counts.
    spreads: dict[frozenset[str], float] = {}
    for op in layers:
        if op.source is not None and input_spread > 0:
            spreads[op.weights] = max(spreads.get(op.weights, 0.0), spread(op.source.now, _axis(op)) / input_spread)
    smallest = min((value for value in spreads.values() if value > 0), default=1.0)
    relative_gradient = 1.0 if relative_gradient is None else relative_gradient
    if relative_gradient >= MIN_GRADIENT and smallest >= MIN_SPREAD:
        return
    # Attenuation is -log of the gradient gain: how much of the gradient an operator takes away.
    attenuation = {op.index: -log(op.gradient_gain) for op in (*trace.layers, *trace.activations) if op.gradient_gain}
    in_activations = sum(max(0.0, attenuation.get(op.index, 0.0)) for op in trace.activations)
    in_weights = sum(max(0.0, attenuation.get(op.index, 0.0)) for op in trace.layers)
    if in_activations > in_weights and trace.activations:
        worst = max(attenuation.get(op.index, 0.0) for op in trace.activations)
        first_cause = next(op for op in trace.activations if attenuation.get(op.index, 0.0) > 0.5 * worst)
        passed = exp(-worst)
        causes = [op for op in trace.activations if attenuation.get(op.index, 0.0) > 0.5 * worst]
        yield trace.finding(
            "vanishing gradients", first_cause.step, min(relative_gradient, smallest),
            (f"The first layer's gradient is {relative_gradient:.2g} of the largest layer's. " if relative_gradient < MIN_GRADIENT
             else f"The spread of examples falls to {smallest:.2g} of that at the input. ") +
            f"{len(causes)} calls of {first_cause.name} each let about {passed:.2g} of the gradient through.",
            "Use ReLU or GELU instead of " + first_cause.name + ", or add residual connections, or a norm before each.",
        )  # fmt: skip
        return
    worst = _extreme([op for op in layers if op.index <= last.index], -1)
    yield trace.finding(
        "vanishing activations", worst.step, min(relative_gradient, smallest),
        f"The spread of examples falls to {smallest:.2g} of that at the input; this layer multiplies it by {_spread_gain(worst) or 0.0:.2g}.",
        "Initialise with standard deviation sqrt(2 / fan_in) before ReLU, sqrt(1 / fan_in) before tanh, or add norms or residuals.",
    )  # fmt: skip


def _relative_gradient(trace: StepTrace) -> float | None:
    """Norm of the weights times norm of their gradient: the first layer relative to the largest layer after it."""
    depth: dict[str, int] = {}
    for op in trace.ops:
        for name in op.weights & trace.trainable:
            depth.setdefault(name, op.depth)
    products: dict[int, float] = {}
    for name, at in depth.items():
        gradient = trace.gradients[name]
        if gradient is not None:
            products[at] = max(
                products.get(at, 0.0),
                rms(gradient) * gradient.numel() ** 0.5 * rms(trace.parameter_values[name]) * gradient.numel() ** 0.5,
            )
    if len(products) < 2:
        return None
    first = min(products)
    largest = max(size for at, size in products.items() if at > first)
    return products[first] / largest if largest > 0 and products[first] > 0 else None


def _axis(op: TracedOp) -> int:
    return 1 if op.name == "convolution" else -1


def _extreme(layers: list[TracedOp], side: int) -> TracedOp:
    """The first layer whose gain (side 1) is within a factor 2 of the largest, or whose spread gain (side -1) of the smallest."""
    gains = {op.index: side * log(gain) for op in layers if (gain := op.gain if side > 0 else _spread_gain(op))}
    if not gains:
        return layers[0]
    most = max(gains.values())
    return next(op for op in layers if gains.get(op.index, -1e9) >= most - log(2))


def _spread_gain(op: TracedOp) -> float | None:
    """Spread of examples at the output of a layer relative to that at its input; a bias does not change it."""
    before = spread(op.source.now, _axis(op)) if op.source is not None else 0.0
    return spread(op.out.now, op.axis) / before if before else None


def _saturated(trace: StepTrace) -> Iterator[Finding]:
    worst: tuple[float, TracedOp] | None = None
    for op in trace.activations:
        share = saturation(op)
        if share > MAX_SATURATED and (worst is None or share > worst[0] + 0.1):
            worst = (share, op)
    if worst is None:
        return
    share, op = worst
    size = rms(op.source.now) if op.source is not None else 0.0
    yield trace.finding(
        "saturated units", op.step, share,
        f"{share:.0%} of the outputs of {op.name} are saturated, where the gradient is nearly 0; the RMS of its inputs is {size:.3g}.",
        "Make its inputs smaller: scale the data to standard deviation 1, initialise with smaller weights, or put a norm before it.",
    )  # fmt: skip


def saturation(op: TracedOp) -> float:
    """The share of a sigmoid's or tanh's outputs within 0.5% of the ends of its range."""
    if op.name not in ("sigmoid", "tanh") or op.out.now is None or not op.out.now.numel():
        return 0.0
    low = -1.0 if op.name == "tanh" else 0.0
    scaled = (to_double(op.out.now) - low) / (1.0 - low)
    return float(((scaled < 0.005) | (scaled > 0.995)).double().mean())
