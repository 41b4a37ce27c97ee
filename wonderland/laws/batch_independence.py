"""Independence of batch mates: a row alone gives what it gives among others."""

import torch

from wonderland.laws.compare import gap
from wonderland.laws.example import Example
from wonderland.laws.subject import Subject, Unfit, law
from wonderland.laws.verdict import Verdict

TOLERANCE = 1e-9
_ROWS = 32


@law
def batch_independence(subject: Subject) -> Verdict:
    """A row alone = the row among mates, up to 1e-9 of the largest output; a batch of one is given mates.

    Of a larger batch, 32 rows are looked at, the first, the last, and others spread between them.
    """
    out = subject.example.axis("batch", "output")
    if subject.example.axis("batch") is None or out is None or subject.base.dim() <= out:
        raise Unfit("the input or the output has no batch")
    if subject.x.dim() == 1 and subject.x.is_floating_point():
        raise Unfit("an input of one axis is one row, and has no mates")
    example, full = subject.example, subject.base
    with torch.no_grad():
        if full.shape[out] == 1:
            example = _with_mates(subject)
            full = subject.run(example=example, when="with mates in the batch")
        rows = full.shape[out]
        worst, words = 0.0, ""
        for row in sorted({round(k * (rows - 1) / (_ROWS - 1)) for k in range(_ROWS)}):
            index = torch.tensor([row], device=subject.x.device)
            alone = subject.run(example=example.rows(index), when=f"when row {row} was alone")
            error, amount, place = gap(full.index_select(out, index.to(full.device)), alone)
            if not error <= worst:
                worst = error
                spot = subject.place(tuple(row if k == out else number for k, number in enumerate(place)))
                words = f"{spot} differs by {amount:.2g} from row {row} alone, among {rows} rows"
                if not place:
                    words = f"row {row} alone has shape {tuple(alone.shape)}, and {tuple(full.shape)} among {rows} rows"
    return subject.verdict(worst, TOLERANCE * subject.coarse, words)


def _with_mates(subject: Subject) -> Example:
    twice = subject.example.rows(torch.zeros(2, dtype=torch.int64, device=subject.x.device))
    axis = subject.example.axis("batch")
    assert axis is not None
    marks = torch.tensor([False, True], device=subject.x.device)
    shape = [-1 if k == axis else 1 for k in range(subject.x.dim())]
    return twice.holding(subject.changed(twice.input, marks.view(shape)))
