import json
import sys
from pathlib import Path

import pytest
import torch

from tests.train.parallel.workers import CASES, losses
from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.parallel import Group, launch
from wonderland.train.parallel.batch_norm import batch_norm


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    """The folder of trainings by two processes."""
    folder = tmp_path_factory.mktemp("two")
    words = [sys.executable, "-m", "tests.train.parallel.workers", str(folder)]
    assert launch(words, 2, restarts=0) == 0
    return folder


@pytest.mark.parametrize("case", CASES)
def test_two_processes_have_the_losses_of_one(two, tmp_path, case):
    dtype, options = CASES[case]
    alone = losses(tmp_path / "one", dtype, **{**options, "sharded": False})
    apart = json.loads((two / f"{case}.json").read_text())
    assert len(apart) == 20
    tolerance = 1e-9 if dtype == torch.float64 else 1e-5
    torch.testing.assert_close(torch.tensor(apart), torch.tensor(alone), rtol=0, atol=tolerance)
    assert apart[-1] < apart[0]


@pytest.mark.parametrize("case", ["float64", "sharded"])
def test_one_process_reads_the_checkpoint_of_two(two, tmp_path, case):
    dtype, options = CASES[case]
    (two / case / "checkpoint" / ".lock").unlink(missing_ok=True)
    more = losses(two / case, dtype, **{**options, "sharded": False}, steps=24)
    assert len(more) == 4  # the steps that were left
    state = Checkpoints(two / case / "checkpoint").newest()["state"]
    assert state["step"] == 24
    assert state["parts"]["model"]["blocks.0.weight"].shape == (16, 16)


def test_a_batch_is_divided_and_put_together_again():
    batch = Batch({"x": torch.arange(7)})
    shares = [Group(rank, 3, 3).share(batch)["x"].tolist() for rank in range(3)]
    assert shares == [[0, 1, 2], [3, 4], [5, 6]]
    with pytest.raises(WonderlandError) as error:
        Group(0, 8, 8).share(batch)
    assert str(error.value) == (
        "A batch of 7 examples cannot be shared by 8 processes: take a larger --batch-size, or fewer processes."
    )
    with pytest.raises(WonderlandError) as error:
        Group(0, 2, 2).share(Batch({"x": torch.zeros(3)}, axis=None))
    assert str(error.value) == (
        "A batch of this data is one piece, which processes cannot share: fit it with one process."
    )


def test_a_process_that_dies_is_begun_again_and_bad_input_is_not(tmp_path):
    died, said = tmp_path / "died", []
    script = (
        "import os, sys, pathlib\n"
        f"path = pathlib.Path({str(died)!r} + os.environ['RANK'])\n"
        "path.write_text(path.read_text() + '.' if path.exists() else '.')\n"
        "again = os.environ['TORCHELASTIC_RESTART_COUNT'] != '0'\n"
        "if os.environ['RANK'] == '1' and not again: os.kill(os.getpid(), 9)\n"
    )
    assert launch([sys.executable, "-c", script], 2, say=said.append) == 0
    assert said == ["A process died (SIGKILL): all 2 begin again from the last checkpoint, 1 of 3 times."]
    assert (tmp_path / "died1").read_text() == ".."
    assert launch([sys.executable, "-c", "raise SystemExit(2)"], 2, say=said.append) == 2
    assert launch([sys.executable, "-c", "raise SystemExit(7)"], 2, restarts=1, say=said.append) == 7
    assert said[1:] == ["A process died (exit code 7): all 2 begin again from the last checkpoint, 1 of 1 times."]


def test_synchronised_batch_norm_is_batch_norm_where_the_batch_is_whole(monkeypatch):
    monkeypatch.setattr("torch.distributed.all_reduce", lambda tensor: None)
    torch.manual_seed(0)
    x, weight, bias = torch.randn(6, 3, 4, dtype=torch.float64), torch.rand(3).double(), torch.rand(3).double()
    means = [torch.zeros(3, dtype=torch.float64) for _ in range(2)]
    variances = [torch.ones(3, dtype=torch.float64) for _ in range(2)]
    inputs = [x.clone().requires_grad_() for _ in range(2)]
    ours = batch_norm(inputs[0], means[0], variances[0], weight, bias, 0.1, 1e-5)
    theirs = torch.nn.functional.batch_norm(inputs[1], means[1], variances[1], weight, bias, True, 0.1, 1e-5)
    torch.testing.assert_close(ours, theirs)
    ours.square().sum().backward()
    theirs.square().sum().backward()
    torch.testing.assert_close(inputs[0].grad, inputs[1].grad)
    torch.testing.assert_close(means[0], means[1])
    torch.testing.assert_close(variances[0], variances[1])
