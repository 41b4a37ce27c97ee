"""What the doctor says: findings with their site and remedy, gathered in a diagnosis."""

import os
from dataclasses import dataclass, field
from html import escape


@dataclass(frozen=True)
class Finding:
    """One sick site: the illness, the module path ("" for the whole program), the source line, what was measured, the remedy.

    >>> print(Finding("dead units", "body.1", "net.py:12", 0.97, "97% of 64 units are 0.", "Begin with bias 0."))
    dead units in body.1 (net.py:12)
      97% of 64 units are 0.
      Remedy: Begin with bias 0.
    """

    illness: str
    module: str
    line: str
    number: float
    words: str
    remedy: str

    @property
    def site(self) -> str:
        """Where it is, in words: "body.1 (net.py:12)"."""
        line = _short(self.line)
        return f"{self.module} ({line})" if self.module and line else self.module or line

    def __str__(self) -> str:
        place = f" in {self.site}" if self.site else ""
        return f"{self.illness}{place}\n  {self.words}\n  Remedy: {self.remedy}"


@dataclass(frozen=True)
class Vitals:
    """One module's output in numbers: mean and deviation, shares of zeros and of saturated units, norms of gradients.

    `gradient` is the norm of the loss's gradient by this output, `parameters` the same by each of its own parameters; None
    where no gradient flows.
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
    """All findings about one model on one batch, the gravest first; true in a condition if there are none.

    `layers` holds the numbers of every module that ran, `notes` what could not be examined and why.
    """

    name: str
    loss: float | None
    findings: list[Finding]
    layers: list[Vitals] = field(default_factory=list, repr=False)
    notes: list[str] = field(default_factory=list)

    @property
    def healthy(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.healthy

    def headline(self) -> str:
        """The first sentence: how many findings, and the loss."""
        count = len(self.findings)
        loss = "" if self.loss is None else f" Its loss is {self.loss:.4g}."
        found = "Nothing is wrong" if not count else "1 thing is wrong" if count == 1 else f"{count} things are wrong"
        return f"{found} with {self.name}, as far as could be measured.{loss}"

    def __str__(self) -> str:
        said = [self.headline()]
        said += [f"{number}. {finding}" for number, finding in enumerate(self.findings, 1)]
        said += [f"Not examined: {note}" for note in self.notes]
        return "\n".join(said)

    def table(self) -> str:
        """The numbers of every module, a line each."""
        head = ("module", "kind", "mean", "std", "zeros", "saturated", "gradient")
        rows = [head, *(_cells(one) for one in self.layers)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
            for row in rows
        )
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td><b>{escape(one.illness)}</b></td><td><code>{escape(one.site)}</code></td>"
            f"<td>{escape(one.words)}</td><td>{escape(one.remedy)}</td></tr>"
            for one in self.findings
        )
        head = "".join(f"<th>{name}</th>" for name in ("illness", "where", "measured", "remedy"))
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
        notes = "".join(f"<p>Not examined: {escape(note)}</p>" for note in self.notes)
        return f"<p>{escape(self.headline())}</p>{table}{notes}"


def _cells(one: Vitals) -> tuple[str, ...]:
    gradient = "-" if one.gradient is None else f"{one.gradient:.2g}"
    numbers = (f"{one.mean:.2g}", f"{one.std:.2g}", f"{one.zeros:.0%}", f"{one.saturated:.0%}", gradient)
    return (one.module or "(all)", one.kind, *numbers)


def _short(line: str) -> str:
    """A source line as seen from the working folder."""
    here = os.getcwd() + os.sep
    return line[len(here) :] if line.startswith(here) else line
