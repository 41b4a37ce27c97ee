"""docs/map.md does not lie: every symbol it names exists, and so does every test and lab."""

import ast
import importlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
# Rows of the checklist, by section: all of them have to be in the map.
SECTIONS = {"1.1": (1, 26), "1.2": (27, 45), "1.3": (46, 67), "1.4": (68, 84), "1.5": (85, 90), "1.6": (91, 103),
            "1.7": (104, 113), "1.15": (246, 263)}  # fmt: skip
FOREIGN = ("torch.", "numpy.", "examples.")


def rows() -> list[list[str]]:
    """Cells of every row of every table, without heads and rules."""
    found = []
    for line in (ROOT / "docs" / "map.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0] not in ("row", "section") and set(cells[0]) - set("-: "):
            found.append(cells)
    return found


ROWS = rows()
CHECKLIST = [row for row in ROWS if re.fullmatch(r"\d\.\d+/\d{3}", row[0])]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def resolve(symbol: str) -> Any:
    """What a name such as `optim.SGD`, `torch.cat` or `examples/xor` stands for."""
    plain = re.sub(r"\(.*", "", symbol)
    if "/" in plain:
        place = ROOT / plain
        assert place.is_file() or (place / "__init__.py").is_file(), (
            f"{symbol} is no file and no folder of this repository"
        )
        return place
    parts = plain.split(".")
    if not plain.startswith(FOREIGN) and parts[0] != "wonderland":
        parts = ["wonderland", *parts]
    thing, rest = importlib.import_module(parts[0]), parts[1:]
    for i, part in enumerate(rest):
        if not hasattr(thing, part):
            importlib.import_module(".".join([parts[0], *rest[: i + 1]]))
        thing = getattr(thing, part)
    return thing


@cache
def functions(path: str) -> set[str]:
    """The tests of a file, found without running it."""
    return {node.name for node in ast.parse((ROOT / path).read_text()).body if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_checklist_is_there_once_in_order():
    wanted = [f"{section}/{row:03}" for section, (first, last) in SECTIONS.items() for row in range(first, last + 1)]
    assert [row[0] for row in CHECKLIST] == wanted
    assert all(len(row) == 4 and named(row[2]) and named(row[3]) for row in CHECKLIST)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}"[:40])
def test_a_row_names_what_exists(row):
    assert len(row) >= 3, row
    for symbol in named(row[2]):
        assert resolve(symbol) is not None, symbol
    for place in named(row[3]) if len(row) > 3 else []:
        path, _, name = place.partition("::")
        assert (ROOT / path).exists(), f"{place} does not exist"
        if path.startswith("examples/"):
            assert (ROOT / path / "__main__.py").is_file() or path.endswith(".py"), f"{place} is no lab"
        elif path.endswith(".py"):
            assert not name or name in functions(path), f"{path} has no test {name}"


def test_a_name_that_does_not_exist_is_noticed():
    for symbol in ("optim.Adamw", "torch.nothing", "examples/nothing", "nn.Attention.strem"):
        with pytest.raises((AttributeError, ImportError, AssertionError)):
            resolve(symbol)


@pytest.mark.slow
def test_every_test_of_the_checklist_is_collected_by_pytest():
    """That they run is shown by the suite itself; here, that pytest finds each under the name in the map."""
    places = sorted({place for row in CHECKLIST for place in named(row[3]) if place.startswith("tests/")})
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", *places]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]
