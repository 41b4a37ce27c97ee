"""wonderland trace: tables, Python and pages; what cannot be traced is told."""

import pytest

from wonderland.cli.main import main

OWN = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.inner(x).relu().sum()


class Needs(torch.nn.Module):
    def __init__(self, size):
        super().__init__()


def loss(x, y):
    return (x * y).sum()


def embed(tokens):
    return torch.nn.functional.one_hot(tokens, 7).float().mean()


def built():
    return Net()


number = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_table_of_steps(own, capsys):
    assert main(["trace", "own.py:Net", "--shapes", "4,3"]) == 0
    out = capsys.readouterr().out
    assert "v1 = torch.addmm(inner_bias, x, v0)" in out
    assert "own.py:11" in out
    assert out.rstrip().endswith("peak 64 bytes")


def test_modules_that_a_function_builds_integers_and_scalars(own, capsys):
    assert main(["trace", "own.py:built", "--shapes", "4,3"]) == 0
    assert main(["trace", "own.py:embed", "--shapes", "4:7"]) == 0
    assert main(["trace", "own.py:loss", "--shapes", "-", "2,2"]) == 0
    assert "x0 * x1" in capsys.readouterr().out


def test_the_reverse_program_as_python(own, capsys):
    assert main(["trace", "own.py:loss", "--shapes", "2,3", "2,3", "--reverse", "--code"]) == 0
    out = capsys.readouterr().out
    assert "def loss_reverse(x0, x1):" in out
    assert out.splitlines()[-2].startswith("    return (")


def test_an_html_page(own, capsys):
    assert main(["trace", "own.py:loss", "--shapes", "2,3", "2,3", "--html"]) == 0
    assert capsys.readouterr().out == "The trace is in trace.html\n"
    assert "<svg" in (own / "trace.html").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["own.py:loss", "--shapes", "2,a", "2,3"],
            "'2,a' is not the shape of an input: write positive sizes such as 2,17,64, or 2,17:50.",
        ),
        (
            ["own.py:Net", "--shapes", "4,5"],
            "own.py:Net could not be run on 4,5 (RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x5 and 3x2)): "
            "give its inputs with --shapes.",
        ),
        (
            ["own.py:Needs"],
            "own.py:Needs could not be built without arguments (TypeError: Needs.__init__() missing 1 required positional "
            "argument: 'size'): name a module that is built, or a function.",
        ),
        (["own.py:number"], "own.py:number is a int, and a function or a module is traced."),
        (
            ["own.py"],
            "'own.py' names no factory: write package.module:Name or path/to/file.py:Name, with a function of tensors "
            "or what builds a module.",
        ),
        (
            ["own.py:loss", "--shapes", "100000,100000", "2"],
            "Inputs have at most 100,000,000 numbers here: a smaller shape shows the same steps.",
        ),
    ],
)
def test_errors_to_the_word(own, capsys, words, message):
    assert main(["trace", *words]) == 2
    assert capsys.readouterr().err == f"wonderland: {message}\n"
