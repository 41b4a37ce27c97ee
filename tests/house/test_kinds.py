"""Outside its own folder no code knows which kinds of data there are."""

import ast
from pathlib import Path

import pytest

from wonderland.core.options import described
from wonderland.kinds import KINDS, NAMES, options_of

HOUSE = Path(__file__).parents[2] / "wonderland"
TASKS = ("binary", "multiclass", "regression", "language", "translation", "classification")
CLASSES = ("Table", "TableEncoder", "Images", "ImageEncoder", "Texts", "TextEncoder", "Corpus", "CorpusEncoder", "Pairs",
           "PairsEncoder", "TableKind", "ImageKind", "TextKind", "CorpusKind", "PairsKind")  # fmt: skip
ABSTRACT = ("Dataset", "Encoder", "Task", "Plan", "Classification", "Regression", "LanguageModelling", "Translation")
FOLDERS = ("data", "road", "ship", "trust", "understand", "cli", "tasks", "train")
FILES = [path for folder in FOLDERS for path in sorted((HOUSE / folder).rglob("*.py"))]


def words(node: ast.AST) -> list[str]:
    """The texts among some values."""
    values = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [value.value for value in values if isinstance(value, ast.Constant) and isinstance(value.value, str)]


def leaks(tree: ast.AST) -> list[str]:
    """Places that ask what kind of data or task they have."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            compared = [word for side in (node.left, *node.comparators) for word in words(side)]
            found += [f"line {node.lineno}: compares with {word!r}" for word in compared if word in (*NAMES, *TASKS)]
        if isinstance(node, ast.Dict):
            keys = [word for key in node.keys if key is not None for word in words(key)]
            if sum(key in NAMES for key in keys) > 1:
                found.append(f"line {node.lineno}: a dict keyed by kind")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
            found += [f"line {node.lineno}: isinstance of {name}" for name in names & {*CLASSES, *ABSTRACT}]
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("wonderland.kinds."):
            inner = node.module.split(".")[2]
            found += [f"line {node.lineno}: imports from the kind {inner}"] if inner in NAMES else []
    return found


def test_the_check_can_fail():
    planted = """
from wonderland.kinds.table.table import Table
if dataset.kind == "image": pass
if task in ("binary", "other"): pass
ROADS = {"table": 1, "image": 2}
isinstance(data, Texts)
"""
    assert len(leaks(ast.parse(planted))) == 5


def test_no_code_outside_kinds_names_one():
    found = {str(path.relative_to(HOUSE)): leaks(ast.parse(path.read_text())) for path in FILES}
    found = {path: places for path, places in found.items() if places}
    # How a target column and arrays become a task is read from the data in two places; a task is checked to be one.
    # Columns of a table have kinds of their own, one of them called text.
    allowed = {
        "data/columns.py": 1,
        "data/target.py": 3,
        "data/arrays.py": 3,
        "data/source.py": 1,
        "ship/run.py": 1,
        "kinds/choose.py": 1,
    }
    assert {path: places for path, places in found.items() if len(places) > allowed.get(path, 0)} == {}
    assert sum(map(len, found.values())) < 10


@pytest.mark.parametrize("name", NAMES)
def test_a_kind_is_a_folder_with_options_and_an_instance(name):
    kind = KINDS[name]
    assert kind.name == name
    assert kind.Options is options_of(name)
    assert kind.Options.__doc__.strip()
    assert all(option.help for option in described(kind.Options).values())
