"""Every test runs on one thread, so that its bits do not depend on who else is working."""

import gc
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import install_import_hook

# Public shapes are checked under test and cost nothing in use. Abilities check by themselves what users call them with.
SHAPED = ("ops", "nn", "solvers", "models", "checkpoints", "generation")
TASKS = [path.stem for path in (Path(__file__).parents[1] / "wonderland/tasks").iterdir() if path.stem != "abilities"]
install_import_hook(
    [f"wonderland.{name}" for name in (*SHAPED, *(f"tasks.{name}" for name in TASKS))], "beartype.beartype"
)

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


def pytest_collection_finish():
    """What is there now stays to the end: the collector need not look through it again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)
