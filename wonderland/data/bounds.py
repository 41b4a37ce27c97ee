"""The bounds of a table: bytes, cells and columns, checked before memory is taken."""

from collections import Counter
from typing import Any

from wonderland.core import WonderlandError

MAX_BYTES = 4 << 30
MAX_COLUMNS = 10_000
MAX_CELLS = 500_000_000


def check_names(names: list[str], where: Any) -> None:
    """Refuse names that occur twice, and tables wider than the limit."""
    if len(names) > MAX_COLUMNS:
        raise WonderlandError(f"{where} has {len(names):,} columns; the limit is {MAX_COLUMNS:,}.")
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = ", ".join(str(i + 1) for i, name in enumerate(names) if name == twice[0])
        raise WonderlandError(f"{where} has more than one column named {twice[0]!r} (columns {places}). Rename them.")


def too_large(where: Any) -> WonderlandError:
    """The error for a file that is too large, packed or unpacked."""
    return WonderlandError(
        f"{where} is larger than {MAX_BYTES >> 30} GiB, the limit for a table. Take a sample of its rows."
    )
