"""The public surface is chosen: what each folder exports is written down in surface.txt and changes only on purpose.

python -m tests.house.test_surface    # writes surface.txt anew
"""

import importlib
import subprocess
import sys
from pathlib import Path

import wonderland

HERE = Path(__file__).parent
FOLDERS = [
    "core", "ops", "autodiff", "laws", "nn", "optim", "probability", "solvers", "models", "checkpoints", "generation", "data", "trust",
    "understand", "tasks", "train", "rl", "kinds", "ship", "search", "road",
]  # fmt: skip


def surface() -> str:
    lines = [f"wonderland: {', '.join(wonderland.__all__)}"]
    for folder in FOLDERS:
        module = importlib.import_module(f"wonderland.{folder}")
        for name in module.__all__:
            assert getattr(module, name) is not None
        lines.append(f"{folder}: {', '.join(sorted(module.__all__))}")
    return "\n".join(lines) + "\n"


def test_the_surface_is_as_written():
    assert surface() == (HERE / "surface.txt").read_text(), (
        "if it changed on purpose: python -m tests.house.test_surface"
    )


def test_everything_public_is_documented():
    for folder in FOLDERS:
        module = importlib.import_module(f"wonderland.{folder}")
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                assert (thing.__doc__ or "").strip(), f"{folder}.{name} has no docstring"


def test_torch_and_its_compiler_are_not_loaded_before_they_are_needed():
    script = (
        "import sys, wonderland, wonderland.cli.main as cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {'torch', 'numpy', 'pandas', 'rich'} & set(sys.modules), 'loaded too early'\n"
        "import wonderland.nn, wonderland.models, wonderland.road, wonderland.ship\n"
        "assert 'torch._dynamo' not in sys.modules, 'loaded too early'\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


if __name__ == "__main__":
    (HERE / "surface.txt").write_text(surface())
