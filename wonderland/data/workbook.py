"""Tables in workbooks (xlsx): one sheet, whose first row with cells holds the names."""

import zipfile
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.core import WonderlandError, nearest, need
from wonderland.core.limits import beyond, check, limit
from wonderland.data.bounds import check_names
from wonderland.data.dataset import Finding, counted
from wonderland.data.json_table import frame_of

MOST_ROWS = 1 << 20  # of a sheet, by the format


def read_workbook(path: Path, sheet: str | None = None) -> tuple[pd.DataFrame, list[Finding]]:
    """A sheet of a workbook: the one that is named, else the first that holds rows. Formulas have the values last computed."""
    openpyxl = need("openpyxl", extra="excel", why="to read workbooks")
    try:
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(member.file_size for member in packed.infolist())
            check("workbook_bytes", unpacked, f"{path}, once unpacked,")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True, keep_links=False)
    except WonderlandError:
        raise
    except Exception as error:  # a damaged workbook fails in many ways inside the reader
        raise WonderlandError(f"{path} is not a workbook (.xlsx), or it is damaged or encrypted.") from error
    try:
        names = [one.title for one in book.worksheets]
        if sheet is not None and sheet not in names:
            known = ", ".join(map(repr, names[:8]))
            raise WonderlandError(f"{path} has no sheet {sheet!r}.{nearest(sheet, names)} Its sheets are {known}.")
        filled = [(name, rows) for name in ([sheet] if sheet else names) if (rows := _rows(book[name], path))]
    except WonderlandError:
        raise
    except Exception as error:
        raise WonderlandError(f"{path} is not a workbook (.xlsx), or it is damaged or encrypted.") from error
    finally:
        book.close()
    if not filled:
        raise WonderlandError(f"{path} has no rows. Add rows, or give another file.")
    name, rows = filled[0]
    findings = []
    if len(filled) > 1:
        others = ", ".join(repr(other) for other, _ in filled[1:6])
        text = f"{path.name} has {counted(len(filled), 'sheet', 'sheets')} with cells; {name!r} is read, not {others} (--sheet)."
        findings.append(Finding("sheet", path.name, len(filled), text))
    return _frame(rows, f"{path}, sheet {name!r},"), findings


def _rows(sheet: Any, path: Path) -> list[tuple[Any, ...]]:
    """The cells from the first row that has any, without empty rows."""
    if hasattr(sheet, "reset_dimensions"):
        sheet.reset_dimensions()  # the size that a file states may be anything
    rows, cells, most = [], 0, limit("table_cells")
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > MOST_ROWS:  # rows that are not in the file are given as empty ones, up to the number it states
            raise WonderlandError(f"{path} has a row number above {MOST_ROWS:,}, the most of a sheet: it is damaged.")
        check("table_columns", len(row), path)
        if any(cell is not None and cell != "" for cell in row):
            rows.append(row)
            cells += len(row)
            if cells > most:
                raise beyond("table_cells", path)
    return rows


def _frame(rows: list[tuple[Any, ...]], where: str) -> pd.DataFrame:
    width = max(map(len, rows))
    rows = [(*row, *[None] * (width - len(row))) for row in rows]
    used = [i for i in range(width) if any(row[i] is not None and row[i] != "" for row in rows)]
    start = next((k for k, row in enumerate(rows[:10]) if sum(row[i] is not None for i in used) > len(used) / 2), 0)
    names = [str(rows[start][i]).strip() if rows[start][i] is not None else f"column_{i}" for i in used]
    check_names(names, where)
    if len(rows) == start + 1:
        raise WonderlandError(f"{where} has a header row and no rows below it. Add rows, or name another sheet.")
    return frame_of({name: [row[i] for row in rows[start + 1 :]] for name, i in zip(names, used, strict=True)})
