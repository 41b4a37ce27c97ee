"""Mutated run folders of every kind: refused in a sentence or accepted, never a traceback, within a second and 200 MB.

A failure names its case. `python -m tests.fuzz.repeat NUMBER` runs it again.
"""

import pytest

from tests.fuzz import cases


def failures(numbers, home) -> list[str]:
    found = []

    def look(case):
        if said := cases.problem(case):
            found.append(f"case {case['case']} ({case['words']}): {said}")

    cases.run_all(numbers, home, look)
    return found


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def test_a_few_mutations(home):
    assert failures(range(30), home) == []


@pytest.mark.slow
def test_many_mutations(home):
    assert failures(range(10_000, 11_500), home) == []
