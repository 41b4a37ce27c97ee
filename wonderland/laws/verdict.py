"""Verdicts: the result of checking a law, and the table of several."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import overload

HOLDS, BROKEN, NOT_APPLICABLE = "holds", "broken", "not applicable"


@dataclass(frozen=True)
class Verdict:
    """The result of one law on one block: outcome, largest error, tolerance, and a witness in words.

    The witness of a broken law says where; that of a law that does not apply gives the reason. `promised` is False if the
    block does not claim the law and it is only reported. A verdict is true unless the law is broken.

    >>> print(Verdict("causality", "broken", 0.12, 1e-12, "output 3 moved by 0.12 when input 7 changed (row 0)"))
    causality: broken, error 0.12 (allowed 1e-12): output 3 moved by 0.12 when input 7 changed (row 0)
    """

    law: str
    outcome: str
    error: float | None = None
    tolerance: float | None = None
    witness: str = ""
    promised: bool = True

    def __bool__(self) -> bool:
        return self.outcome != BROKEN

    def __str__(self) -> str:
        measured = "" if self.error is None else f", error {self.error:.2g} (allowed {self.tolerance:.2g})"
        return f"{self.law}: {self.outcome}{measured}{': ' if self.witness else ''}{self.witness}"

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"

    def row(self) -> dict[str, str]:
        """The cells of this verdict in a table."""
        outcome = self.outcome if self.promised or self else "does not hold"
        error = "" if self.error is None else f"{self.error:.2g}"
        allowed = "" if self.tolerance is None else f"{self.tolerance:.2g}"
        return {"law": self.law, "outcome": outcome, "error": error, "allowed": allowed, "witness": self.witness}


class Verdicts(Sequence[Verdict]):
    """The verdicts of several laws on one block, in the order asked; shown as a table.

    `broken` are those that were promised or asked for and do not hold.
    """

    def __init__(self, verdicts: Sequence[Verdict]):
        self._verdicts = tuple(verdicts)

    @property
    def broken(self) -> list[Verdict]:
        """The laws that were promised or asked for, and are broken."""
        return [verdict for verdict in self if verdict.promised and not verdict]

    @overload
    def __getitem__(self, index: int | str) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> "Verdicts": ...
    def __getitem__(self, index: int | str | slice) -> "Verdict | Verdicts":
        """By number, or by the name of the law."""
        if isinstance(index, slice):
            return Verdicts(self._verdicts[index])
        if isinstance(index, str):
            return {verdict.law: verdict for verdict in self}[index]
        return self._verdicts[index]

    def __len__(self) -> int:
        return len(self._verdicts)

    def __iter__(self) -> Iterator[Verdict]:
        return iter(self._verdicts)

    def __str__(self) -> str:
        rows = [verdict.row() for verdict in self]
        head = {name: name for name in ("law", "outcome", "error", "allowed", "witness")}
        widths = {name: max(len(row[name]) for row in [head, *rows]) for name in head}
        lines = ("  ".join(row[name].ljust(widths[name]) for name in head) for row in [head, *rows])
        return "\n".join(line.rstrip() for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        color = {HOLDS: "#2e7d32", BROKEN: "#c62828", NOT_APPLICABLE: "#757575"}
        head = "".join(f"<th>{name}</th>" for name in ("law", "outcome", "error", "allowed", "witness"))
        body = ""
        for verdict in self:
            cells = {name: escape(text) for name, text in verdict.row().items()}
            shade = color[verdict.outcome] if verdict.promised else color[NOT_APPLICABLE]
            cells["outcome"] = f'<span style="color:{shade}">{cells["outcome"]}</span>'
            body += "<tr>" + "".join(f"<td>{text}</td>" for text in cells.values()) + "</tr>"
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
