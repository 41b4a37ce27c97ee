"""Mutated checkpoint folders of published families: loaded or refused in a sentence, within a second and 200 MB."""

import pytest

from tests.fuzz.checkpoints import failures, write_checkpoints


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("checkpoints") / "families"
    home.mkdir()
    return write_checkpoints(home)


def test_a_few_mutations(folders):
    assert failures(folders, range(150)) == []


@pytest.mark.slow
def test_many_mutations(folders):
    assert failures(folders, range(10_000, 14_000)) == []
