"""Type checkers read the arguments of `spec` from the constructor: a misspelt one is an error, one left out is not."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
RIGHT = """
from wonderland import models, nn, optim

nn.Mamba.spec(state_size=3)
nn.Mamba.spec(dim=8, state_size=3)
nn.Attention.spec(heads=2, position=nn.Rotary.spec())
nn.Block.spec(mixer=nn.LSTM.spec())
nn.LoRA.spec(rank=8)
models.Decoder.spec(dim=128, mixer=nn.Mamba.spec())
models.Decoder.spec(vocab=9, dim=128, depth=4)
models.ConvNet.spec(dim=32)
models.ConvNet.spec(channels=1, classes=3, height=8, width=8, dim=8)
optim.Lion.spec(lr=1e-4)
optim.FusedAdamW.spec(weight_decay=0.1)
optim.Plateau.spec(patience=3)
"""
WRONG = """
from wonderland import models, nn, optim

nn.Mamba.spec(state_sise=3)
nn.Mamba.spec(state_size="3")
nn.Mamba(8, state_sise=3)
models.Decoder.spec(vocab=9, dmi=128)
models.ConvNet.spec(dmi=32)
optim.Lion.spec(learning_rate=1e-4)
optim.FusedAdamW.spec(learning_rate=1e-4)
"""


def errors(folder: Path, text: str) -> set[int]:
    """The lines of a program that pyright finds wrong."""
    program = folder / "program.py"
    program.write_text(text)
    checked = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, str(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = json.loads(checked.stdout)["generalDiagnostics"]
    return {each["range"]["start"]["line"] for each in told if each["severity"] == "error"}


def test_pyright_sees_a_misspelt_argument_of_spec(tmp_path):
    assert errors(tmp_path, RIGHT) == set()
    assert errors(tmp_path, WRONG) == set(range(3, 10))


def test_the_package_says_that_it_is_typed():
    assert (ROOT / "wonderland" / "py.typed").exists()
