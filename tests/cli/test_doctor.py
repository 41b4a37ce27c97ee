"""wonderland doctor: a factory in, findings and an exit code out."""

import subprocess
import sys

import pytest

from wonderland.cli.main import main

SOURCE = """
import torch
from torch import nn

def net(activation, depth):
    torch.manual_seed(0)
    layers = [layer for _ in range(depth) for layer in (nn.Linear(16, 16), activation())]
    return nn.Sequential(*layers, nn.Linear(16, 4))

def batch():
    return torch.randn(32, 16), torch.randint(4, (32,))

def well():
    return net(nn.ReLU, 2), batch()

def tower():
    return net(nn.Sigmoid, 8), batch()

def summed():
    return net(nn.ReLU, 2), batch(), nn.CrossEntropyLoss(reduction="sum")

def fast():
    model = net(nn.ReLU, 2)
    return model, batch(), None, torch.optim.SGD(model.parameters(), lr=100.0)

def needs(width):
    return width

def single():
    return net(nn.ReLU, 2)

number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, *words) -> tuple[int, str, str]:
    code = main(["doctor", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_healthy_model(folder, capsys):
    code, out, _ = said(capsys, "nets.py:well", "--lr", "0.001", "--optimizer", "sgd")
    assert code == 0
    assert out.startswith("No problem found in Sequential. Its loss is ")
    assert "Not checked" not in out


def test_a_problem_and_the_statistics_of_all_layers(folder, capsys):
    code, out, _ = said(capsys, "nets.py:tower", "--layers")
    assert code == 1
    lines = out.splitlines()
    assert lines[1] == "1. vanishing gradients in 1 (nets.py:16)"
    assert lines[3].startswith("  Remedy: Use ReLU or GELU")
    assert lines[4] == "Not checked: the learning rate: give optimizer= or lr=."
    assert lines[5].split() == ["module", "kind", "mean", "std", "zeros", "saturated", "gradient"]
    assert len(lines) == 6 + 17


def test_a_users_own_loss_and_optimizer(folder, capsys):
    code, out, _ = said(capsys, "nets.py:summed")
    assert code == 1
    assert "1. loss summed over the batch" in out
    code, out, _ = said(capsys, "nets.py:fast")
    assert code == 1
    assert "1. learning rate too large" in out
    code, out, _ = said(capsys, "nets.py:fast", "--lr", "0.01")
    assert code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nets.py"], "'nets.py' names no factory: write package.module:Name or path/to/file.py:Name, with a function that gives (model, batch)."),
        (["none.py:a"], "There is no file none.py."),
        (["nets.py:wel"], "There is no 'wel' in nets.py. Did you mean 'well'?"),
        (["nets.py:needs"], "nets.py:needs could not be called without arguments (TypeError: needs() missing 1 required positional argument: 'width'): name a function that gives (model, batch)."),
        (["nets.py:number"], "nets.py:number gives a int, and the doctor needs (model, batch), (model, batch, loss) or (model, batch, loss, optimizer)."),
        (["nets.py:single"], "nets.py:single gives a Sequential, and the doctor needs (model, batch), (model, batch, loss) or (model, batch, loss, optimizer)."),
        (["nets.py:well", "--lr", "0"], "lr must be a positive number, not 0.0."),
        (["nets.py:well", "--steps", "1"], "The check of the learning rate needs at least 2 steps, not 1."),
        (["nets.py:well", "--optimizer", "adm"], "There is no optimizer 'adm'. Did you mean 'adam' or 'adamw'? Known are adam, adamw, sgd. See: wonderland doctor --help"),
    ],
)  # fmt: skip
def test_errors_to_the_word_with_exit_code_2(folder, capsys, words, message):
    code, _, err = said(capsys, *words)
    assert code == 2
    assert err == f"wonderland: {message}\n"


def test_it_runs_in_a_shell_where_the_file_is(folder):
    done = subprocess.run(
        [sys.executable, "-m", "wonderland.cli.main", "doctor", "nets:tower"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "vanishing gradients in 1 (nets.py:16)" in done.stdout
