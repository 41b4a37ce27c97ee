"""The results of `doctor`: findings with their location and remedy, collected in a diagnosis."""

import os
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Finding:
    """One problem: its name, the module path ("" for the whole model), the source line, the number and sentence measured, the remedy.

    >>> print(Finding("dead units", "body.1", "net.py:12", 0.97, "97% of 64 units are 0.", "Initialise with bias 0."))
    dead units in body.1 (net.py:12)
      97% of 64 units are 0.
      Remedy: Initialise with bias 0.
    """

    problem: str
    module: str
    line: str
    number: float
    measured: str
    remedy: str

    @property
    def location(self) -> str:
        """Module and source line as text: "body.1 (net.py:12)"."""
        line = _relative(self.line)
        return f"{self.module} ({line})" if self.module and line else self.module or line

    def __str__(self) -> str:
        place = f" in {self.location}" if self.location else ""
        return f"{self.problem}{place}\n  {self.measured}\n  Remedy: {self.remedy}"


@dataclass(frozen=True)
class LayerStatistics:
    """Statistics of one module's output: mean, standard deviation, shares of zeros and of saturated units, gradient norms.

    `gradient` is the norm of the gradient with respect to this output, `parameters` those with respect to each of the module's
    own parameters; None where no gradient flows.
    """

    module: str
    kind: str
    mean: float
    std: float
    zeros: float
    saturated: float
    finite: bool
    gradient: float | None
    parameters: dict[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Diagnosis:
    """All findings about one model on one batch; `bool(diagnosis)` is True if there are none.

    `layers` holds the statistics of every module that ran, `notes` the checks that were not possible and why.
    """

    name: str
    loss: float | None
    findings: list[Finding]
    layers: list[LayerStatistics] = field(default_factory=list, repr=False)
    notes: list[str] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        """Whether there are no findings."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.healthy

    def headline(self) -> str:
        """The first sentence: how many findings, and the loss."""
        count = len(self.findings)
        loss = "" if self.loss is None else f" Its loss is {self.loss:.4g}."
        problems = "No problem" if not count else "1 problem" if count == 1 else f"{count} problems"
        return f"{problems} found in {self.name}.{loss}"

    def __str__(self) -> str:
        lines = [self.headline()]
        lines += [f"{number}. {finding}" for number, finding in enumerate(self.findings, 1)]
        lines += [f"Not checked: {note}" for note in self.notes]
        return "\n".join(lines)

    def table(self) -> str:
        """The statistics of every module, one line each."""
        head = ("module", "kind", "mean", "std", "zeros", "saturated", "gradient")
        rows = [head, *(_cells(layer) for layer in self.layers)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        )
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><b>{escape(finding.problem)}</b></td><td><code>{escape(finding.location)}</code></td>"
            f"<td>{escape(finding.measured)}</td><td>{escape(finding.remedy)}</td></tr>"
            for finding in self.findings
        )
        head = "".join(f"<th>{name}</th>" for name in ("problem", "location", "measured", "remedy"))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
        notes = "".join(f"<p>Not checked: {escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self.headline())}</p>{table}{notes}"


def _cells(layer: LayerStatistics) -> tuple[str, ...]:
    gradient = "-" if layer.gradient is None else f"{layer.gradient:.2g}"
    numbers = (f"{layer.mean:.2g}", f"{layer.std:.2g}", f"{layer.zeros:.0%}", f"{layer.saturated:.0%}", gradient)
    return (layer.module or "(all)", layer.kind, *numbers)


def _relative(line: str) -> str:
    """A source line with its path relative to the working folder."""
    folder = os.getcwd() + os.sep
    return line[len(folder) :] if line.startswith(folder) else line
