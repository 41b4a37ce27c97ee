"""What the tests of images share."""

import pytest

from tests.data.pictures import folder


@pytest.fixture
def animals(tmp_path):
    return folder(tmp_path / "animals", {"cat": 3, "dog": 4, "emu": 2})
