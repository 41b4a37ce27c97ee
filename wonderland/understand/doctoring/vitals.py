"""Vital signs: the output of every module in numbers."""

from wonderland.understand.doctoring.exam import Exam, Moment, finite, norm, wide
from wonderland.understand.doctoring.finding import Vitals
from wonderland.understand.doctoring.signals import saturation


def vitals(exam: Exam) -> list[Vitals]:
    """One entry a module that ran, in the order of running: what the last of its steps gave."""
    last: dict[str, Moment] = {}
    for m in exam.moments:
        if m.source is not None and m.out.smooth and not m.out.dtype.is_complex and m.step.module:
            last[m.step.module] = m
    own: dict[str, dict[str, float | None]] = {}
    for name, slope in exam.gradients.items():
        own.setdefault(exam.place(name), {})[name.rpartition(".")[2]] = None if slope is None else norm(slope)
    found = []
    for path, m in sorted(last.items(), key=lambda entry: entry[1].index):
        assert m.out.now is not None
        now = wide(m.out.now)
        found.append(
            Vitals(
                path,
                exam.kind(path),
                float(now.mean()),
                float(now.std(correction=0)),
                float((now == 0).double().mean()),
                saturation(m),
                finite(m.out.now),
                exam.slope(m.out),
                own.get(path, {}),
            )
        )
    return found
