"""Convolutions over time: receptive fields, padding, and what torch computes."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.mixers.causal_convolution import CausalConvolution


def field(layers, dim=1, length=64):
    """How many tokens the last output of a stack depends on."""
    x = torch.randn(1, length, dim, dtype=torch.float64, requires_grad=True)
    y = x
    for layer in layers:
        y = layer.double()(y)
    middle = length - 1 if layers[0].causal else length // 2
    (slope,) = torch.autograd.grad(y[0, middle].sum(), x)
    seen = slope[0].abs().sum(1).nonzero().flatten()
    assert len(seen) == int(seen.max() - seen.min()) + 1
    return len(seen)


def test_dilated_stacks_see_exponentially_far():
    """T8.04."""
    centred = [CausalConvolution(1, width=3, dilation=r, causal=False) for r in (1, 2, 4, 8)]
    assert [field(centred[:n]) for n in range(1, 5)] == [3, 7, 15, 31]
    undilated = [CausalConvolution(1, width=3, causal=False) for _ in range(4)]
    assert [field(undilated[:n]) for n in range(1, 5)] == [3, 5, 7, 9]
    causal = [CausalConvolution(1, width=2, dilation=r) for r in (1, 2, 4, 8)]
    assert [field(causal[:n]) for n in range(1, 5)] == [2, 4, 8, 16]


@pytest.mark.parametrize("depthwise", [False, True])
def test_early_outputs_do_not_depend_on_what_comes_later_or_whether_it_comes(depthwise):
    """T8.06."""
    mixer = CausalConvolution(3, width=3, depthwise=depthwise)
    x = torch.randn(1, 4, 3)
    padded = torch.cat([x[:, :2], torch.zeros(1, 2, 3)], 1)
    torch.testing.assert_close(mixer(x)[:, :2], mixer(padded)[:, :2])
    torch.testing.assert_close(mixer(x)[:, :2], mixer(x[:, :2]))


def test_padding_on_the_left_equals_masking_the_centred_kernel():
    """T8.05: a centred kernel of size 5 whose two weights on the future are 0."""
    mixer = CausalConvolution(3, width=3)
    centred = CausalConvolution(3, width=5, causal=False)
    with torch.no_grad():
        centred.weight.copy_(F.pad(mixer.weight, (0, 2)))
        centred.bias.copy_(mixer.bias)
    x = torch.randn(2, 7, 3)
    torch.testing.assert_close(mixer(x), centred(x))


@pytest.mark.parametrize("options", [{}, {"groups": 2}, {"depthwise": True}, {"depthwise": True, "width": 70}])
@pytest.mark.parametrize("dilation", [1, 3])
def test_equals_a_padded_convolution_of_torch_in_values_and_gradients(options, dilation):
    mixer = CausalConvolution(4, dilation=dilation, **options).double()
    theirs = nn.Conv1d(4, 4, mixer.width, dilation=dilation, groups=mixer.groups).double()
    theirs.load_state_dict(mixer.state_dict())
    x = torch.randn(2, 9, 4, dtype=torch.float64, requires_grad=True)
    expected = theirs(F.pad(x.transpose(1, 2), (mixer.reach, 0))).transpose(1, 2)
    found = mixer(x)
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(found)
    mine = torch.autograd.grad((found * weights).sum(), [x, mixer.weight, mixer.bias])
    other = torch.autograd.grad((expected * weights).sum(), [x, theirs.weight, theirs.bias])
    torch.testing.assert_close(mine, other)


def test_state_is_the_last_tokens_of_each_row_whatever_the_length():
    mixer = CausalConvolution(2, width=2, dilation=2)
    x = torch.arange(1.0, 13).view(1, 6, 2).repeat(2, 1, 1)
    mask = torch.arange(6) < torch.tensor([[6], [1]])
    _, (past, count) = mixer.stream(x, None, mask)
    assert past.tolist() == [[[9, 10], [11, 12]], [[0, 0], [1, 2]]]
    assert count.tolist() == [6, 1]
    assert mixer.state_numbers(5) == mixer.state_numbers(500) == 4


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: CausalConvolution(4, width=0),
            "CausalConvolution needs a width and a dilation of at least 1, not 0 and 1.",
        ),
        (
            lambda: CausalConvolution(4, width=2, causal=False),
            "CausalConvolution with causal=False centres its window, so its width is odd, not 2.",
        ),
        (
            lambda: CausalConvolution(4, groups=3),
            "CausalConvolution cuts 4 features into equal groups, so not into 3.",
        ),
    ],
)
def test_wrong_arguments_are_told_so(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
