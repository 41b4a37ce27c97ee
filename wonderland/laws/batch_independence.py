"""Batch independence: the output of a row does not depend on the other rows of its batch."""

import torch

from wonderland.laws.compare import gap
from wonderland.laws.example import Example
from wonderland.laws.subject import NotApplicable, Subject, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-9
_MAX_ROWS = 32


@law
def batch_independence(subject: Subject) -> Verdict:
    """The output of a row alone equals its output in the batch, up to 1e-9 of the largest output.

    A batch of one row gets a second row. Of a large batch, 32 rows are compared, evenly spread, both ends among them.
    """
    out = subject.example.axis("batch", "output")
    if subject.example.axis("batch") is None or out is None or subject.base.dim() <= out:
        raise NotApplicable("the input or the output has no batch")
    if subject.x.dim() == 1 and subject.x.is_floating_point():
        raise NotApplicable("an input of one axis is one row, and has no mates")
    example, full = subject.example, subject.base
    with torch.no_grad():
        if full.shape[out] == 1:
            example = _with_second_row(subject)
            full = subject.run(example=example, when="with mates in the batch")
        rows = full.shape[out]
        worst, witness = 0.0, ""
        for row in sorted({round(k * (rows - 1) / (_MAX_ROWS - 1)) for k in range(_MAX_ROWS)}):
            index = torch.tensor([row], device=subject.x.device)
            alone = subject.run(example=example.rows(index), when=f"when row {row} was alone")
            error, amount, place = gap(full.index_select(out, index.to(full.device)), alone)
            if not error <= worst:
                worst = error
                spot = subject.place(tuple(row if k == out else number for k, number in enumerate(place)))
                witness = f"{spot} differs by {amount:.2g} from row {row} alone, among {rows} rows"
                if not place:
                    witness = (
                        f"row {row} alone has shape {tuple(alone.shape)}, and {tuple(full.shape)} among {rows} rows"
                    )
    return subject.verdict(worst, TOLERANCE * subject.tolerance_factor, witness)


def _with_second_row(subject: Subject) -> Example:
    """The example with its only row twice, the second one changed."""
    twice = subject.example.rows(torch.zeros(2, dtype=torch.int64, device=subject.x.device))
    axis = subject.example.axis("batch")
    assert axis is not None
    is_second = torch.tensor([False, True], device=subject.x.device)
    shape = [-1 if k == axis else 1 for k in range(subject.x.dim())]
    return twice.holding(subject.changed(twice.input, is_second.view(shape)))
