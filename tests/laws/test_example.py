"""Examples: accepted and refused arguments, and which part of an output is compared."""

from collections import namedtuple

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.laws import Example, determinism

Answer = namedtuple("Answer", "hidden logits")


def test_an_example_from_what_is_at_hand():
    x = torch.randn(2, 3)
    assert Example.of(x).input is x
    assert Example.of((1, x)).place == 1
    assert Example((), {"ids": x}).place == "ids"
    block = nn.Identity()
    block.dim = 5
    assert Example.of(None, block).input.shape == (3, 7, 5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Example.of((2, 7, 8)), "(2, 7, 8) could be a shape or arguments: write Example.floats(2, 7, 8) for random numbers of that shape, or Example.tokens(2, 7, 8, vocab=...) for random integers."),
        (lambda: Example.of("x"), "An example is a tensor, a tuple of arguments or an Example, not of type str."),
        (lambda: Example.of(None, nn.Identity()), "Identity needs an example to be checked on: a tensor, a tuple of arguments, or Example.tokens(2, 17, vocab=100)."),
        (lambda: Example((3,)), "An example needs a tensor among its inputs, since laws change a tensor and compare outputs."),
        (lambda: Example.floats(2, 3, axes=("batch", "tim")), "'tim' is not the name of an axis. Did you mean 'time'? Axes are batch, time, node, height, width, feature, or None."),
        (lambda: Example.floats(2, 3, side="top"), "Padding goes to the 'right' or the 'left', not to 'top'."),
    ],
)  # fmt: skip
def test_what_is_refused(make, message):
    with pytest.raises(WonderlandError) as error:
        make()
    assert str(error.value) == message


def test_the_part_of_an_answer():
    answer = Answer(torch.arange(3), torch.ones(2))
    assert Example.floats(1).pick(answer) is answer.logits
    assert Example.floats(1, output="hidden").pick(answer) is answer.hidden
    assert Example.floats(1, output=0).pick(answer) is answer.hidden
    assert Example.floats(1, output=lambda found: found.logits).pick(answer) is answer.logits
    assert Example.floats(1, output="a").pick({"a": answer.logits}) is answer.logits


@pytest.mark.parametrize(
    ("output", "answer", "message"),
    [
        (None, {"ids": torch.arange(3)}, "The answer is a dict without a tensor of floating point numbers: say which part to look at with output=."),
        ("logit", {"logits": torch.ones(2)}, "The answer, a dict, has no part 'logit'. Did you mean 'logits'?"),
        (5, (torch.ones(2),), "The answer, a tuple, has no part 5."),
    ],
)  # fmt: skip
def test_a_part_that_is_not_there(output, answer, message):
    with pytest.raises(WonderlandError) as error:
        Example.floats(1, output=output).pick(answer)
    assert str(error.value) == message


def test_axes_have_names_by_input():
    example = Example(
        (torch.zeros(3, 2, 4), torch.zeros(2, 5)),
        {"mask": torch.zeros(2)},
        axes={0: ("time", "batch"), "output": ("batch",)},
    )
    assert (example.axis("time"), example.axis("batch")) == (0, 1)
    assert example.axis("batch", 1) == example.axis("batch", "mask") == 0
    assert (example.axis("time", 1), example.axis("time", "output")) == (None, None)


def test_a_call_that_fails_is_told():
    with pytest.raises(WonderlandError) as error:
        determinism(nn.Linear(3, 3), Example.floats(2, 5))
    assert str(error.value) == (
        "Linear could not be called on this example: "
        "it raised RuntimeError (mat1 and mat2 shapes cannot be multiplied (2x5 and 3x3))."
    )


def test_only_modules_are_judged():
    with pytest.raises(WonderlandError) as error:
        determinism(torch.relu, torch.ones(2))
    assert str(error.value) == "Laws are checked on a torch module, not on a builtin_function_or_method."
