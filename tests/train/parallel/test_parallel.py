import json
import sys
from pathlib import Path

import pytest
import torch

from tests.train.parallel.workers import CASES, losses
from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.nn import BatchNorm
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.parallel import GradientSum, Group, launch, synchronised_batch_norm


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
    x = torch.randn(6, 3, 4, dtype=torch.float64)
    norms = [torch.nn.BatchNorm1d(3).double(), BatchNorm(3, axis="first").double(), torch.nn.BatchNorm1d(3).double()]
    inputs = [x.clone().requires_grad_() for _ in norms]
    outputs = []
    for norm, given in zip(norms[:2], inputs, strict=False):
        with synchronised_batch_norm(norm):
            outputs.append(norm(given))
    outputs.append(norms[2](inputs[2]))
    for output in outputs:
        output.pow(3).sum().backward()
    for output, given, norm in zip(outputs, inputs, norms, strict=True):
        torch.testing.assert_close(output, outputs[2])
        torch.testing.assert_close(given.grad, inputs[2].grad)
        mean, variance = list(norm.buffers())[:2]
        torch.testing.assert_close(mean, norms[2].running_mean)
        torch.testing.assert_close(variance, norms[2].running_var)


class Sent:
    """Stands for a sum over two equal processes that is under way."""

    def __init__(self, tensor):
        self.tensor, self.waited = tensor, False

    def wait(self):
        self.tensor *= 2


@pytest.mark.parametrize("bucket", [1, 40, 10_000])
def test_gradients_are_added_up_in_buckets_that_are_sent_before_the_backward_pass_ends(monkeypatch, bucket):
    sent = []

    def all_reduce(tensor, async_op=False):
        if async_op:
            sent.append(sum(p.grad is not None for p in model.parameters()))
            return Sent(tensor)
        return None

    monkeypatch.setattr("torch.distributed.all_reduce", all_reduce)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    model.unused = torch.nn.Parameter(torch.ones(5))
    loss = model(torch.ones(3, 4)).square().sum()
    expected = torch.autograd.grad(loss, list(model.parameters())[1:], retain_graph=True)
    with GradientSum(model.parameters(), bucket=bucket):
        loss.backward()
    assert model.unused.grad is None
    for parameter, gradient in zip(list(model.parameters())[1:], expected, strict=True):
        torch.testing.assert_close(parameter.grad, 2 * gradient)
    assert len(sent) == {1: 5, 40: 2, 10_000: 1}[bucket]
    if bucket == 40:
        assert sent[0] < 4  # the last layer's before the first layer has any
