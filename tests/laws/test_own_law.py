"""Laws of one's own: what is checked about them, and the page on them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import wonderland
from wonderland.core import WonderlandError
from wonderland.laws import LAWS, NotApplicable, Verdict, law

PAGE = Path(__file__).parents[2] / "docs" / "own_law.md"


@pytest.fixture(autouse=True)
def _leave_the_laws_as_they_were():
    known = dict(LAWS)
    yield
    LAWS.clear()
    LAWS.update(known)


def test_a_law_of_ones_own_is_known_by_its_name():
    @law
    def odd(subject):
        if not subject.x.is_floating_point():
            raise NotApplicable("tokens have no sign")
        error = float((subject.run(-subject.x) + subject.base).abs().max())
        return subject.verdict(error, 1e-12, f"f(-x) and -f(x) differ by {error:.2g}")

    x = torch.randn(2, 3)
    assert wonderland.check(nn.Tanh(), x, "odd")[0].outcome == "holds"
    verdict = wonderland.check(nn.Sigmoid(), x, [odd])[0]
    assert str(verdict) == "odd: broken, error 1 (allowed 1e-12): f(-x) and -f(x) differ by 1"
    assert odd(nn.Embedding(3, 2), torch.tensor([[1, 2]])).witness == "tokens have no sign"


def test_a_function_of_module_and_example_is_a_law_too():
    def small(module, example):
        return Verdict("small", "holds")

    assert wonderland.check(nn.Tanh(), torch.ones(2, 3), small)[0].outcome == "holds"


def two(subject, other):
    pass


def none():
    pass


def keyword(subject, *, strength):
    pass


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (two, "The law two takes (subject, other): a law takes one argument, the subject, and options with defaults. Write def two(subject) -> Verdict; subject.block is the module, subject.x the input."),
        (none, "The law none takes (): a law takes one argument, the subject, and options with defaults. Write def none(subject) -> Verdict; subject.block is the module, subject.x the input."),
        (keyword, "The law keyword takes (subject, strength): a law takes one argument, the subject, and options with defaults. Write def keyword(subject) -> Verdict; subject.block is the module, subject.x the input."),
        (3, "@law goes before a function, not before a int."),
    ],
)  # fmt: skip
def test_a_wrong_signature_is_refused_where_it_is_written(function, message):
    with pytest.raises(WonderlandError) as error:
        law(function)
    assert str(error.value) == message


def test_a_name_that_is_taken():
    def causality(subject):
        pass

    with pytest.raises(WonderlandError) as error:
        law(causality)
    assert str(error.value) == "There is a law causality in wonderland.laws.causality already: choose another name."


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (none, "The law none cannot be called as none(module, example): too many positional arguments. Write def none(module, example) -> Verdict, or @law before def none(subject)."),
        (two, "The law two returned None and not a Verdict: end it with return subject.verdict(error, tolerance, witness)."),
    ],
)  # fmt: skip
def test_a_function_that_is_no_law(function, message):
    with pytest.raises(WonderlandError) as error:
        wonderland.check(nn.Tanh(), torch.ones(2, 3), [function])
    assert str(error.value) == message


def test_an_answer_that_is_no_verdict():
    @law
    def truthy(subject):
        return True

    with pytest.raises(WonderlandError) as error:
        truthy(nn.Tanh(), torch.ones(2, 3))
    assert str(error.value) == (
        "The law truthy returned a bool and not a Verdict: end it with return subject.verdict(error, tolerance, witness)."
    )


def test_the_page_prints_what_it_shows():
    text = PAGE.read_text()
    code, shown = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("python", "text"))
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == "".join(shown).split()
