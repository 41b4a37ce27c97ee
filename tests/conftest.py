"""Every test runs on one thread, so that its bits do not depend on who else is working."""

import gc
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("WONDERLAND_QUIET", "1")  # whoever compiles a kernel first says so, in the middle of any test

import pytest
import torch
from jaxtyping import install_import_hook

torch.set_num_threads(1)
HOUSE = Path(__file__).parents[1] / "wonderland"
# The slow suite checks every annotation of these folders; abilities check by themselves what users call them with.
CHECKED = ("ops", "nn", "solvers", "models", "checkpoints", "generation")
TASKS = [path.stem for path in (HOUSE / "tasks").iterdir() if path.stem != "abilities"]


def pytest_configure(config):
    """Public shapes are checked under test and cost nothing in use.

    A check costs more than most small tensors do, so the default suite checks the modules whose signatures carry shapes.
    """
    if config.option.markexpr == "slow":
        modules = [f"wonderland.{name}" for name in (*CHECKED, *(f"tasks.{name}" for name in TASKS))]
    else:
        carrying = [path for path in HOUSE.rglob("*.py") if "from jaxtyping import" in path.read_text(encoding="utf-8")]
        modules = [".".join(path.relative_to(HOUSE.parent).with_suffix("").parts) for path in carrying]
    install_import_hook(modules, "beartype.beartype")


def pytest_collection_finish():
    """What is there now stays to the end: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # traces and compilers make many objects that stay: looking sooner frees nothing


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def measured_leaderboard():
    """Tests measure no simple methods beside their runs, which would cost as much as they do; those marked `leaderboard` do."""
    from wonderland.kinds.kind import Kind
    from wonderland.kinds.table.kind import TableKind

    measured = TableKind.baselines
    TableKind.baselines = Kind.baselines
    yield measured
    TableKind.baselines = measured


@pytest.fixture(autouse=True)
def with_leaderboard(request, monkeypatch, measured_leaderboard):
    if request.node.get_closest_marker("leaderboard") is not None:
        from wonderland.kinds.table.kind import TableKind

        monkeypatch.setattr(TableKind, "baselines", measured_leaderboard)
