"""Weighted rows in a canonical form: the same for a row of weight 3 and for three copies of it, in whatever order."""

import numpy as np
import pandas as pd
from numpy import ndarray

COPIES = 5  # of equal rows, so that each of five folds can hold one
FEW = 10_000


def weighted_rows(frame: pd.DataFrame, weights: ndarray) -> tuple[ndarray, ndarray]:
    r"""Row numbers, with repetitions, and the weight of each, from a frame and the weight of each of its rows.

    Rows of weight 0 are dropped, the others sorted by their cells, and equal rows merged, which adds their weights. A merged
    row of weight w then becomes :math:`c = \min(\lceil w \rceil, 5)` copies of weight w / c, as equal rows in a table would be
    spread over folds; fewer copies where these would be more than 10,000 rows and 1.5 times the number of different rows.

    So the result depends on the weighted rows as a multiset: a weight of 3 and three copies give the same bits, and the
    order of rows does not matter.

    >>> rows, weights = weighted_rows(pd.DataFrame({"a": [2.0, 1.0, 2.0, 3.0]}), np.array([1.0, 0.5, 1.0, 0.0]))
    >>> rows.tolist(), weights.tolist()
    ([1, 0, 0], [0.5, 1.0, 1.0])
    """
    kept = np.flatnonzero(weights > 0)
    keys = [_sortable(frame.iloc[:, column])[kept] for column in range(frame.shape[1])]
    order = np.lexsort(keys[::-1])
    new = np.zeros(len(order), bool)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    starts = np.flatnonzero(new)
    merged = np.add.reduceat(weights[kept[order]], starts)
    limit = max(FEW, 1.5 * len(starts))
    wanted = np.minimum(np.ceil(merged), COPIES).astype(np.int64)
    most = next((most for most in range(COPIES, 1, -1) if np.minimum(wanted, most).sum() <= limit), 1)
    copies = np.minimum(wanted, most)
    return np.repeat(kept[order][starts], copies), np.repeat(merged / copies, copies)


def _sortable(cells: pd.Series) -> ndarray:
    """The cells as integers whose order and equality are those of the cells; missing cells are equal and come last."""
    if pd.api.types.is_bool_dtype(cells.dtype) or not pd.api.types.is_numeric_dtype(cells.dtype):
        codes, _ = pd.factorize(cells.astype(str).where(cells.notna()), sort=True, use_na_sentinel=True)
        return np.where(codes < 0, np.iinfo(np.int64).max, codes)
    if pd.api.types.is_integer_dtype(cells.dtype) and not cells.hasnans:
        return cells.to_numpy(np.int64) if cells.dtype != np.uint64 else cells.to_numpy(np.uint64)
    values = cells.to_numpy(np.float64, na_value=np.nan) + 0.0  # -0.0 becomes 0.0
    bits = values.view(np.int64)
    ordered = np.where(bits < 0, np.int64(-(2**63)) - bits, bits)  # negative floats have falling bit patterns
    return np.where(np.isnan(values), np.iinfo(np.int64).max, ordered)
