"""The hand-written gradient is autograd's, seeds do not see each other, and statistics are followed."""

import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.lab.files import find
from examples.lab.names import contexts
from examples.makemore.__main__ import main
from examples.makemore.network import normed, plain
from examples.makemore.training import losses, train
from wonderland.core import WonderlandError

WORDS = ["anna", "bob", "emma", "olivia", "ava", "isabella", "sophia", "charlotte"] * 4


def generators(*seeds):
    return [torch.Generator().manual_seed(seed) for seed in seeds]


@pytest.mark.parametrize("make", [plain, normed])
def test_the_gradient_is_that_of_autograd(make):
    network = make(generators(0, 1), hidden=12)
    if network.normed:
        network.weights["gain"] += 0.1 * torch.randn(2, 1, 12)
    x, y = contexts(WORDS, 3)
    x, y = x[:64].reshape(2, 32, 3), y[:64].reshape(2, 32)
    loss, back = network.step(x, y)
    weights = {name: weight.double().requires_grad_() for name, weight in network.weights.items()}
    rows = torch.stack([table[one] for table, one in zip(weights["table"], x, strict=True)]).reshape(2, 32, -1)
    before = rows @ weights["w1"]
    if network.normed:
        before = (
            weights["gain"] * (before - before.mean(1, keepdim=True)) / before.std(1, keepdim=True) + weights["shift"]
        )
    else:
        before = before + weights["b1"]
    scores = torch.tanh(before) @ weights["w2"] + weights["b2"]
    theirs = torch.stack([torch.nn.functional.cross_entropy(a, b) for a, b in zip(scores, y, strict=True)])
    theirs.sum().backward()
    torch.testing.assert_close(loss.double(), theirs.detach(), rtol=1e-5, atol=1e-6)
    assert back.keys() == weights.keys()
    for name, found in back.items():
        torch.testing.assert_close(found.double(), weights[name].grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("make", [plain, normed])
def test_a_seed_alone_is_the_seed_among_others(make):
    x, y = contexts(WORDS, 3)
    together, _ = train(make, x, y, steps=30, seeds=(5, 6, 7))
    alone, curve = train(make, x, y, steps=30, seeds=(6,))
    torch.testing.assert_close(together.weights["w1"][1], alone.weights["w1"][0])
    torch.testing.assert_close(losses(together, x, y)[1], losses(alone, x, y)[0])
    assert curve[-1][1] < curve[0][1]


def test_statistics_follow_the_batches():
    network = normed(generators(0))
    x, y = contexts(WORDS, 3)
    x, y = x[:40], y[:40]
    for _ in range(250):
        network.step(x[None], y[None])
    before = network.features(x[None]) @ network.weights["w1"]
    # 0.999 to the power 250 of the beginning is left.
    left = 0.999**250
    torch.testing.assert_close(network.mean, (1 - left) * before.mean(1, keepdim=True), rtol=1e-3, atol=1e-3)
    torch.testing.assert_close(network.deviation, left + (1 - left) * before.std(1, keepdim=True), rtol=1e-3, atol=1e-3)


def test_the_lab_runs_and_states_nothing_below_its_steps(tmp_path, capsys):
    (tmp_path / "names.txt").write_text("\n".join(WORDS))
    assert main(["--data", str(tmp_path), "--out", str(tmp_path / "out"), "--steps", "20"]) == 0
    assert "batch norm" in capsys.readouterr().out
    assert (tmp_path / "out" / "loss.svg").exists()


@pytest.mark.slow
def test_the_lab(tmp_path):
    try:
        find("names.txt")
    except WonderlandError:
        pytest.skip("names.txt is not in WONDERLAND_DATA")
    assert main(["--data", os.environ.get("WONDERLAND_DATA", "data"), "--out", str(tmp_path)]) == 0
