"""docs/map.md is true: every symbol, test and lab in it exists, and a test that is named refers to the symbols of its row."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
# Rows of the checklist, by section: all of them have to be in the map.
SECTIONS = {"1.1": (1, 26), "1.2": (27, 45), "1.3": (46, 67), "1.4": (68, 84), "1.5": (85, 90), "1.6": (91, 103),
            "1.7": (104, 113), "1.8": (114, 133), "1.9": (134, 148), "1.10": (149, 161), "1.11": (162, 183), "1.12": (184, 212),
            "1.13": (213, 233), "1.14": (234, 245), "1.15": (246, 263), "1.16": (264, 275), "1.17": (276, 281), "1.18": (282, 285),
            "1.19": (286, 292), "1.20": (293, 299), "1.21": (300, 302), "1.22": (303, 320), "1.23": (321, 341)}  # fmt: skip
FOREIGN = ("torch.", "numpy.", "examples.")
OWN = ("examples", "tests")  # known by name: nothing of them is imported


def rows() -> list[list[str]]:
    """Cells of every row of every table, without heads and rules."""
    tables = []
    for line in (ROOT / "docs" / "map.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and cells[0] not in ("row", "section") and set(cells[0]) - set("-: "):
            tables.append(cells)
    return tables


ROWS = rows()
CHECKLIST = [row for row in ROWS if re.fullmatch(r"\d\.\d+/\d{3}", row[0])]


def named(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def member(thing: Any, name: str) -> Any:
    """An attribute, or a module of a package that nobody has imported yet."""
    if isinstance(thing, ModuleType) and not hasattr(thing, name):
        return importlib.import_module(f"{thing.__name__}.{name}")
    return getattr(thing, name)


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
    thing = importlib.import_module(parts[0])
    for part in parts[1:]:
        thing = member(thing, part)
    return thing


@dataclass(frozen=True)
class References:
    """What a piece of Python refers to, by reading it only.

    `objects` are imported things that it uses, with every prefix: `losses.huber` refers to the module and the function.
    `modules` are the names of modules that these came from. `attributes` are names after a dot, whatever stands before it.
    `subscripts` says whether it reads or writes `x[...]`.
    """

    objects: tuple[Any, ...]
    modules: frozenset[str]
    attributes: frozenset[str]
    subscripts: frozenset[str]

    def include(self, symbol: str) -> bool:
        """Whether a symbol of the map is among them."""
        if "/" in symbol:
            lab = symbol.removesuffix(".py").replace("/", ".")
            return any(name == lab or name.startswith(f"{lab}.") for name in self.modules)
        thing, (parent, _, last) = resolve(symbol), re.sub(r"\(.*", "", symbol).rpartition(".")
        if any(thing is used for used in self.objects):
            return True
        if isinstance(thing, ModuleType):
            return any(name == thing.__name__ or name.startswith(f"{thing.__name__}.") for name in self.modules)
        if last in ("__getitem__", "__setitem__"):
            return last in self.subscripts
        # Methods are called on objects that exist only when the test runs; so are torch's functions that tensors have too.
        method = "." in parent and isinstance(resolve(parent), type)
        return last in self.attributes and (method or (symbol.startswith("torch.") and hasattr(torch.Tensor, last)))


@cache
def parsed(path: str) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"))


def imports(tree: ast.Module) -> dict[str, tuple[str, str | None]]:
    """For each imported name, its module and the name there; None for a module itself."""
    names: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.split(".")[0]
                names[alias.asname or whole] = (whole, None)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    return names


def definitions(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The statements of a module that define each of its names."""
    names: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.setdefault(statement.name, []).append(statement)
        elif not isinstance(statement, ast.Import | ast.ImportFrom):
            for node in ast.walk(statement):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    names.setdefault(node.id, []).append(statement)
    return names


def reached(tree: ast.Module, test: str) -> list[ast.stmt]:
    """A test with the functions, constants and fixtures of its module that it uses, and those that they use."""
    defined, statements, waiting, seen = definitions(tree), [], [test], set()
    assert test in defined, f"there is no test {test}"
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        for statement in defined.get(name, []):
            statements.append(statement)
            local = {
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            }
            if isinstance(statement, ast.FunctionDef):
                local |= {node.arg for node in ast.walk(statement.args) if isinstance(node, ast.arg)}
                waiting += [arg.arg for arg in statement.args.args if is_fixture(defined.get(arg.arg, []))]
            waiting += [
                node.id
                for node in ast.walk(statement)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in local
            ]
    return statements


def is_fixture(statements: list[ast.stmt]) -> bool:
    return any(
        isinstance(statement, ast.FunctionDef)
        and any("fixture" in ast.unparse(decorator) for decorator in statement.decorator_list)
        for statement in statements
    )


def used(node: ast.AST, known: dict[str, tuple[str, str | None]]) -> Iterator[tuple[str, Any]]:
    """The modules and objects that a dotted name passes through, if it begins with an import."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return
    module, name = known[node.id]
    parts = ([] if name is None else [name]) + parts
    if module.split(".")[0] in OWN:
        for count in range(len(parts) + 1):
            yield ".".join([module, *parts[:count]]), None
        return
    thing = importlib.import_module(module)
    for part in parts:
        yield module, thing
        try:
            thing = member(thing, part)
        except (AttributeError, ImportError):
            return  # an attribute that objects get when they are made
        if isinstance(thing, ModuleType):
            module = thing.__name__
    yield module, thing


@cache
def references(place: str) -> References:
    """What a test (`file::name`), a file or a lab (a folder) refers to."""
    path, _, test = place.partition("::")
    files = [path] if path.endswith(".py") else [str(file.relative_to(ROOT)) for file in (ROOT / path).rglob("*.py")]
    objects, modules, attributes, subscripts = [], set(), set(), set()
    for file in files:
        tree = parsed(file)
        known = imports(tree)
        for statement in reached(tree, test) if test else tree.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.Subscript):
                    subscripts.add("__getitem__" if isinstance(node.ctx, ast.Load) else "__setitem__")
                if isinstance(node, ast.Attribute):
                    attributes.add(node.attr)
                if isinstance(node, ast.Attribute | ast.Name):
                    for module, thing in used(node, known):
                        modules.add(module)
                        objects.append(thing)
    return References(tuple(objects), frozenset(modules), frozenset(attributes), frozenset(subscripts))


def untested(row: list[str]) -> list[str]:
    """The symbols of a row to which none of its tests and labs refers."""
    places = named(row[3])
    return [
        symbol
        for symbol in named(row[2])
        if symbol not in places and not any(references(place).include(symbol) for place in places)
    ]


def test_every_row_of_the_checklist_is_there_once_in_order():
    wanted = [f"{section}/{row:03}" for section, (first, last) in SECTIONS.items() for row in range(first, last + 1)]
    names = [row[0] for row in CHECKLIST]
    assert [name for name in names if name.split("/")[0] in SECTIONS] == wanted
    assert names == sorted(set(names), key=lambda name: name.split("/")[1])  # nothing twice
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
            assert not name or name in definitions(parsed(path)), f"{path} has no test {name}"


@pytest.mark.parametrize("row", [row for row in ROWS if len(row) > 3], ids=lambda row: row[0])
def test_the_tests_of_a_row_refer_to_its_symbols(row):
    missing = untested(row)
    assert not missing, f"{', '.join(missing)}: not used by {row[3]}"


def test_a_name_that_does_not_exist_is_noticed():
    for symbol in ("optim.Adamw", "torch.nothing", "examples/nothing", "nn.Attention.strem"):
        with pytest.raises((AttributeError, ImportError, AssertionError)):
            resolve(symbol)


ACTIVATIONS = "tests/nn/channel/test_activations.py"


@pytest.mark.parametrize(
    ("symbols", "places", "missing"),
    [
        # A test of the same file that does not use the symbol; the whole file does.
        ("`nn.relu`", f"`{ACTIVATIONS}::test_a_function_is_taken_as_it_is`", ["nn.relu"]),
        ("`nn.relu`", f"`{ACTIVATIONS}`", []),
        ("`nn.relu`, `optim.Yogi`", f"`{ACTIVATIONS}`", ["optim.Yogi"]),
        # torch has a function of the same name.
        ("`nn.relu`", "`tests/books/test_builders_guide.py`", ["nn.relu"]),
        ("`torch.relu`", "`tests/books/test_builders_guide.py`", []),
        # By a helper and a table of the module; methods by their name; labs by their import.
        ("`optim.Nesterov`", "`tests/optim/test_rules.py::test_the_kernel_is_the_rule`", []),
        ("`nn.Attention.stream`", f"`{ACTIVATIONS}`", ["nn.Attention.stream"]),
        ("`torch.Tensor.__setitem__`", f"`{ACTIVATIONS}::test_a_function_is_taken_as_it_is`", ["torch.Tensor.__setitem__"]),
        ("`examples/bptt`", "`tests/examples/test_bptt.py`", []),
        ("`examples/xor`", "`tests/examples/test_bptt.py`", ["examples/xor"]),
    ],
)  # fmt: skip
def test_a_row_whose_test_does_not_touch_its_symbol_is_noticed(symbols, places, missing):
    assert untested(["1.6/092", "an idea", symbols, places]) == missing


@pytest.mark.slow
def test_every_test_of_the_checklist_is_collected_by_pytest():
    """That they run is shown by the suite itself; here, that pytest finds each under the name in the map."""
    places = sorted({place for row in CHECKLIST for place in named(row[3]) if place.startswith("tests/")})
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider", *places]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]
