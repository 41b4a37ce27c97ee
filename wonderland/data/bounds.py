"""The names of a table's columns, checked before memory is taken."""

from collections import Counter
from typing import Any

from wonderland.core import WonderlandError
from wonderland.core.limits import check


def check_names(names: list[str], where: Any) -> None:
    """Refuse names that occur twice, and tables wider than the limit."""
    check("table_columns", len(names), where)
    twice = [name for name, count in Counter(names).items() if count > 1 and name]
    if twice:
        places = ", ".join(str(i + 1) for i, name in enumerate(names) if name == twice[0])
        raise WonderlandError(f"{where} has more than one column named {twice[0]!r} (columns {places}). Rename them.")
