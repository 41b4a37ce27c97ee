"""Statistics of the output and gradients of every module."""

from wonderland.understand.doctoring.finding import LayerStatistics
from wonderland.understand.doctoring.propagation import saturation
from wonderland.understand.doctoring.trace import StepTrace, TracedOp, is_finite, norm, to_double


def layer_statistics(trace: StepTrace) -> list[LayerStatistics]:
    """One entry for each module that ran, in the order of execution, from the output of its last operator."""
    last: dict[str, TracedOp] = {}
    for op in trace.ops:
        if op.source is not None and op.out.smooth and not op.out.dtype.is_complex and op.step.module:
            last[op.step.module] = op
    parameter_norms: dict[str, dict[str, float | None]] = {}
    for name, gradient in trace.gradients.items():
        parameter_norms.setdefault(trace.module_of(name), {})[name.rpartition(".")[2]] = (
            None if gradient is None else norm(gradient)
        )
    rows = []
    for path, op in sorted(last.items(), key=lambda entry: entry[1].index):
        assert op.out.now is not None
        values = to_double(op.out.now)
        rows.append(
            LayerStatistics(
                path,
                trace.class_name(path),
                float(values.mean()),
                float(values.std(correction=0)),
                float((values == 0).double().mean()),
                saturation(op),
                is_finite(op.out.now),
                trace.gradient_norm(op.out),
                parameter_norms.get(path, {}),
            )
        )
    return rows
