"""What no check foresaw ends in a sentence, in methods of an object too."""

import pytest

from wonderland.core import WonderlandError
from wonderland.core.damage import guard_calls


class Able:
    """Does things, and fails at them."""

    def __call__(self, count: int) -> int:
        return [3][count]

    def write(self, text: str):
        yield text
        yield {}[text]

    def _inner(self):
        raise KeyError("inside")


def test_methods_that_fail_end_in_a_sentence():
    able = guard_calls(Able(), "The run in x", "it is damaged")
    assert isinstance(able, Able)
    assert able(0) == 3
    with pytest.raises(WonderlandError) as refused:
        able(1)
    assert str(refused.value) == "The run in x cannot be used (IndexError: list index out of range): it is damaged."
    pieces = able.write("a")
    assert next(pieces) == "a"
    with pytest.raises(WonderlandError) as refused:
        next(pieces)
    assert str(refused.value) == "The run in x cannot be used (KeyError: 'a'): it is damaged."


def test_arguments_that_do_not_fit_are_no_damage():
    able = guard_calls(Able(), "The run in x", "it is damaged")
    with pytest.raises(TypeError, match="too many positional arguments"):
        able(1, 2)
    assert type(Able()) is Able
