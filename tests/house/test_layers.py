"""The house keeps its order: a folder imports only the folders above it, and nothing unsafe gets in."""

import ast
import re
from pathlib import Path

import pytest

HOUSE = Path(__file__).parents[2] / "wonderland"
ORDER = ["core", "ops", "autodiff", "laws", "nn", "fast", "optim", "probability", "solvers", "models", "checkpoints", "generation",
         "data", "trust", "understand", "tasks", "train", "rl", "kinds", "ship", "search", "road", "studio", "cli"]  # fmt: skip
FILES = sorted(HOUSE.rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Folders of the house that a file imports, wherever in the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            pieces = name.split(".")
            if pieces[0] == "wonderland" and len(pieces) > 1 and pieces[1] in ORDER:
                found.add(pieces[1])
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_a_folder_knows_only_those_above_it(path):
    folder = path.relative_to(HOUSE).parts[0]
    if folder not in ORDER:
        return  # the front door may name anything
    below = {name for name in imported(path) if ORDER.index(name) > ORDER.index(folder)}
    assert not below, f"{folder} imports {below}, which lie below it"


def test_every_folder_has_its_place():
    assert {path.name for path in HOUSE.iterdir() if path.is_dir() and path.name != "__pycache__"} <= set(ORDER)


UNSAFE = re.compile(
    r"\bimport pickle\b|pickle\.load|torch\.load\(|weights_only|(?<![.\w])eval\(|(?<![.\w])exec\(|__import__"
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(HOUSE)))
def test_nothing_unsafe(path):
    assert not UNSAFE.search(path.read_text())


def test_the_check_for_unsafe_calls_can_fail():
    for line in ("import pickle", "x = torch.load(f)", "y = eval(text)", "exec(code)", "__import__(name)"):
        assert UNSAFE.search(line)
    assert not UNSAFE.search("model.eval()")
