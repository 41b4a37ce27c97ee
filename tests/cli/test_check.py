"""wonderland check: words in, a table and an exit code out."""

import subprocess
import sys

import pytest

from wonderland.cli.main import main

SOURCE = """
import torch
from torch import nn

class Past(nn.Module):
    def forward(self, x):
        return x.cumsum(1)

class Future(nn.Module):
    def forward(self, x):
        return x.flip(1)

class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, tokens, hide=None):
        return {"logits": self.table(tokens)}

class Width(nn.Module):
    def __init__(self, dim):
        super().__init__()

class Own(Past):
    dim = 4

    def laws(self):
        return ("causality",)

ready = Past()
number = 3
nothing = lambda: 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "blocks.py").write_text(SOURCE)
    (tmp_path / "bad.py").write_text("import no_such_package")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(capsys, *words) -> tuple[int, str, str]:
    code = main(["check", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_law_that_holds(folder, capsys):
    code, out, _ = said(capsys, "blocks.py:Past", "--input", "2,5,3", "--laws", "causality,determinism")
    assert code == 0
    assert out.startswith("blocks.py:Past: 2 laws\n")
    assert "│ causality   │ holds" in out


def test_a_law_that_is_broken_names_the_place(folder, capsys):
    code, out, _ = said(capsys, "blocks.py:Future", "--input", "2,5,3", "--laws", "causality")
    assert code == 1
    words = " ".join(out.replace("│", " ").split())
    assert "broken" in words
    assert "output 0 moved by" in words
    assert "when input 4 changed" in words


def test_laws_that_do_not_apply_are_shown_and_do_not_count(folder, capsys):
    code, out, _ = said(capsys, "blocks.py:Future", "--input", "2,5,3")
    assert code == 0
    assert "does not hold" in out


def test_tokens_outputs_and_masks(folder, capsys):
    code, out, _ = said(
        capsys, "blocks.py:Tokens", "--input", "2,5", "--integers", "9", "--output", "logits", "--mask", "hide",
        "--laws", "causality,padding_invariance",
    )  # fmt: skip
    assert code == 0
    assert out.count("holds") == 2


def test_a_module_with_laws_and_dim_needs_no_options(folder, capsys):
    code, out, _ = said(capsys, "blocks.py:Own")
    assert code == 0
    assert "1 law\n" in out


def test_an_instance_and_a_class_of_another_package(folder, capsys):
    assert said(capsys, "blocks.py:ready", "--input", "2,5,3", "--laws", "causality")[0] == 0
    assert said(capsys, "torch.nn:Identity", "--input", "2,5,3", "--laws", "causality")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["blocks.py"], "'blocks.py' names no factory: write package.module:Name or path/to/file.py:Name, with what builds the module."),
        (["none.py:A"], "There is no file none.py."),
        (["no_such_package.x:A"], "no_such_package.x could not be imported (ModuleNotFoundError: No module named 'no_such_package')."),
        (["bad.py:A"], "bad.py could not be imported (ModuleNotFoundError: No module named 'no_such_package')."),
        (["blocks.py:Pas"], "There is no 'Pas' in blocks.py. Did you mean 'Past'?"),
        (["blocks.py:number"], "blocks.py:number gives a int, and laws are checked on a torch module."),
        (["blocks.py:nothing"], "blocks.py:nothing gives a int, and laws are checked on a torch module."),
        (["blocks.py:Width"], "blocks.py:Width could not be called without arguments (TypeError: Width.__init__() missing 1 required positional argument: 'dim'): name a function that builds the module."),
        (["blocks.py:Past"], "blocks.py:Past has no attribute dim: give the shape of an input with --input 2,17,64."),
        (["blocks.py:Past", "--mask", "m"], "--mask says how to read an input: give its shape with --input 2,17,64 too."),
        (["blocks.py:Past", "--input", "2,x"], "'2,x' is not the shape of an input: write positive sizes such as 2,17,64."),
        (["blocks.py:Past", "--input", "2,0"], "'2,0' is not the shape of an input: write positive sizes such as 2,17,64."),
        (["blocks.py:Past", "--input", "2,5", "--integers", "1"], "Integers below 1 leave nothing to change: --integers must be at least 2."),
        (["blocks.py:Past", "--input", "2,5,3", "--laws", "casuality"], "There is no law 'casuality'. Did you mean 'causality' or 'locality' or 'strict_causality'?"),
        (["blocks.py:Tokens", "--input", "2,5", "--integers", "9", "--output", "logit"], "The answer, a dict, has no part 'logit'. Did you mean 'logits'?"),
    ],
)  # fmt: skip
def test_errors_to_the_word_with_exit_code_2(folder, capsys, words, message):
    code, _, err = said(capsys, *words)
    assert code == 2
    assert err == f"wonderland: {message}\n"


def test_it_runs_in_a_shell_where_the_file_is(folder):
    done = subprocess.run(
        [sys.executable, "-m", "wonderland.cli.main", "check", "blocks:Future", "--input", "2,5,3", "--laws", "causality"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "output 0" in done.stdout


def test_laws_may_be_named_several_times(folder, capsys):
    words = ["check", "blocks:Future", "--input", "2,5,3", "--laws", "determinism", "--laws", "causality,save_load"]
    assert main(words) == 1
    said = capsys.readouterr().out
    assert all(law in said for law in ("determinism", "causality", "save_load"))
