"""Convolution in all its forms equals torch's, in values and gradients; its laws hold where stride and padding leave them."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import WonderlandError
from wonderland.ops.vision import (
    blur_pool,
    by_fft,
    by_unfold,
    generalised_mean_pool,
    locally_connected,
    output_size,
    receptive_field,
    reference_convolution,
    reference_transposed,
    seen_pixels,
    toeplitz,
    transposed_size,
)

CASES = [
    {},
    {"stride": 2},
    {"padding": 2},
    {"dilation": 2, "padding": 1},
    {"stride": 3, "padding": 1, "dilation": 2},
    {"groups": 2, "padding": 1},
    {"groups": 4, "stride": 2},
]


def example(groups: int = 1, size: int = 3):
    torch.manual_seed(0)
    x = torch.randn(2, 4, 11, 9, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(8, 4 // groups, size, size - 1, dtype=torch.float64, requires_grad=True)
    return x, weight, torch.randn(8, dtype=torch.float64, requires_grad=True)


def same(form, options):
    given = example(options.get("groups", 1))
    expected = F.conv2d(*given, **options)
    found = form(*given, **options)
    assert torch.allclose(found, expected, atol=1e-10)
    cotangent = torch.randn_like(expected)
    for mine, theirs in zip(
        torch.autograd.grad(found, given, cotangent), torch.autograd.grad(expected, given, cotangent), strict=True
    ):
        assert torch.allclose(mine, theirs, atol=1e-10)


@pytest.mark.parametrize("options", CASES, ids=str)
@pytest.mark.parametrize("form", [reference_convolution, by_unfold])
def test_forms_equal_torch(form, options):
    same(form, options)


KERNELS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


def over(axes: int, groups: int = 1, *, transposed: bool = False):
    """An input and a kernel over so many axes, with a bias."""
    torch.manual_seed(axes)
    x = torch.randn(2, 4, *(7, 6, 5)[:axes], dtype=torch.float64, requires_grad=True)
    channels = (4, 6 // groups) if transposed else (6, 4 // groups)
    weight = torch.randn(*channels, *(3, 2, 3)[:axes], dtype=torch.float64, requires_grad=True)
    return x, weight, torch.randn(6, dtype=torch.float64, requires_grad=True)


def agree(found, expected, given):
    assert torch.allclose(found, expected, atol=1e-10)
    cotangent = torch.randn_like(expected)
    pairs = zip(*(torch.autograd.grad(y, given, cotangent) for y in (found, expected)), strict=True)
    assert all(torch.allclose(mine, theirs, atol=1e-10) for mine, theirs in pairs)


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1, "groups": 2}, {"dilation": 2, "padding": 2}], ids=str
)
@pytest.mark.parametrize("axes", [1, 3])
@pytest.mark.parametrize("form", [reference_convolution, by_unfold])
def test_one_and_three_axes(form, axes, options):
    given = over(axes, options.get("groups", 1))
    agree(form(*given, **options), KERNELS[axes](*given, **options), given)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("form", [reference_convolution, by_unfold])
def test_padding_modes_are_those_of_the_layer(form, mode):
    x, _, bias = example()
    weight = torch.randn(8, 4, 3, 3, dtype=torch.float64, requires_grad=True)
    given = x, weight, bias
    for padding in ("valid", 2, "same"):
        layer = nn.Conv2d(4, 8, 3, padding=padding, padding_mode=mode).double()
        expected = torch.func.functional_call(layer, {"weight": weight, "bias": bias}, (x,))
        agree(form(*given, padding=padding, mode=mode), expected, given)


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1, "extra": 1}, {"dilation": 2, "groups": 2}], ids=str
)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_transposed_convolutions_over_any_axes(axes, options):
    given = over(axes, options.get("groups", 1), transposed=True)
    theirs = {"output_padding" if name == "extra" else name: value for name, value in options.items()}
    agree(reference_transposed(*given, **options), TRANSPOSED[axes](*given, **theirs), given)


def test_a_kernel_of_one_pixel_is_a_linear_layer_at_each():
    x, point = torch.randn(2, 4, 5, 5), torch.randn(6, 4)
    linear = (x.movedim(1, -1) @ point.t()).movedim(-1, 1)
    assert torch.allclose(by_unfold(x, point[:, :, None, None]), linear, atol=1e-5)


def test_channels_are_summed_and_groups_are_apart():
    x, weight = torch.randn(1, 4, 6, 6), torch.randn(8, 4, 3, 3)
    each = sum(reference_convolution(x[:, c : c + 1], weight[:, c : c + 1]) for c in range(4))
    assert torch.allclose(reference_convolution(x, weight), each, atol=1e-4)
    halves = [by_unfold(x[:, 2 * g : 2 * g + 2], weight[4 * g : 4 * g + 4, :2]) for g in (0, 1)]
    assert torch.allclose(by_unfold(x, weight[:, :2], groups=2), torch.cat(halves, 1), atol=1e-4)


@pytest.mark.parametrize("padding", [0, 1, 3])
def test_the_spectrum_equals_torch(padding):
    same(by_fft, {"padding": padding})


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1}, {"dilation": 2}])
def test_a_convolution_is_a_matrix_and_its_transpose_the_transposed_convolution(options):
    x, weight, _ = example()
    matrix = toeplitz(weight, 11, 9, **options)
    y = F.conv2d(x, weight, **options)
    assert torch.allclose((x.flatten(1) @ matrix.t()).view_as(y), y, atol=1e-10)
    back = F.conv_transpose2d(y, weight, **options)
    flat = y.flatten(1) @ matrix
    if back.shape == x.shape:
        assert torch.allclose(flat.view_as(x), back, atol=1e-10)
    assert back.shape[2] == transposed_size(y.shape[2], 3, **options)
    assert y.shape[2] == output_size(11, 3, **options)


def test_without_shared_weights_and_with_them():
    x, weight, _ = example()
    shared = weight.expand(9, 8, *weight.shape)
    assert torch.allclose(locally_connected(x, shared), F.conv2d(x, weight), atol=1e-10)


def test_depthwise_separable_is_a_rank_one_kernel():
    x = torch.randn(1, 4, 7, 7)
    depth, point = torch.randn(4, 1, 3, 3), torch.randn(6, 4, 1, 1)
    two = F.conv2d(by_unfold(x, depth, groups=4), point)
    assert torch.allclose(two, F.conv2d(x, point * depth.transpose(0, 1)), atol=1e-4)


def test_shift_equivariance_and_where_stride_and_padding_break_it():
    torch.manual_seed(0)
    x, weight = torch.randn(1, 1, 16, 16), torch.randn(1, 1, 3, 3)
    moved = x.roll(1, 3)
    inside = slice(2, -2)
    plain = reference_convolution(x, weight), reference_convolution(moved, weight)
    assert torch.allclose(plain[0].roll(1, 3)[..., inside], plain[1][..., inside], atol=1e-5)
    strided = by_unfold(x, weight, stride=2), by_unfold(moved, weight, stride=2)
    assert not torch.allclose(strided[0].roll(1, 3)[..., 1:-1], strided[1][..., 1:-1], atol=0.1)
    two = by_unfold(x.roll(2, 3), weight, stride=2)
    assert torch.allclose(strided[0].roll(1, 3)[..., 1:-1], two[..., 1:-1], atol=1e-5)
    padded = by_unfold(x, weight, padding=1), by_unfold(moved, weight, padding=1)
    assert not torch.allclose(padded[0].roll(1, 3), padded[1], atol=0.1)


def test_locality_is_the_receptive_field():
    torch.manual_seed(0)
    layers = [(3, 1, 1, 1), (3, 2, 1, 1), (5, 1, 2, 1), (3, 2, 2, 2)]
    convs = [nn.Conv2d(1, 1, k, stride=s, padding=p, dilation=d) for k, s, p, d in layers]
    for count in range(1, 5):
        field = receptive_field(layers[:count])[-1]
        top, left, bottom, right = seen_pixels(nn.Sequential(*convs[:count]), torch.randn(1, 1, 64, 64), 5, 6)
        assert (top, left) == (field.first + 5 * field.jump, field.first + 6 * field.jump)
        assert (bottom - top + 1, right - left + 1) == (field.side, field.side)


def test_pooling_between_mean_and_maximum():
    x = torch.rand(2, 3, 6, 6)
    assert torch.allclose(generalised_mean_pool(x, 1.0), x.mean((2, 3)), atol=1e-5)
    assert torch.allclose(generalised_mean_pool(x, 300.0), x.amax((2, 3)), rtol=0.02)


def test_a_blur_before_a_stride_makes_shifts_matter_less():
    torch.manual_seed(0)
    x = torch.randn(8, 1, 32, 32)
    plain = (x[..., ::2, ::2] - x.roll(1, 3)[..., ::2, ::2]).std()
    blurred = (blur_pool(x) - blur_pool(x.roll(1, 3)))[..., 1:-1].std()
    assert blurred < 0.5 * plain
    assert torch.allclose(blur_pool(torch.ones(1, 1, 9, 9)), torch.ones(1, 1, 5, 5))


def test_refusals():
    with pytest.raises(WonderlandError, match=r"^A kernel of 5 does not fit a side of 3 with padding 0\.$"):
        output_size(3, 5)
    with pytest.raises(WonderlandError, match="A convolution takes images"):
        by_unfold(torch.zeros(1, 3, 4, 4), torch.zeros(2, 2, 3, 3))
    with pytest.raises(WonderlandError, match=r"^Padding 'same' is for a stride of 1, not 2: give a number\.$"):
        by_unfold(torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 3, 3), padding="same", stride=2)
    with pytest.raises(WonderlandError, match=r"one of zeros, reflect, replicate, circular, not 0 and 'mirror'\.$"):
        by_unfold(torch.zeros(1, 1, 4, 4), torch.zeros(1, 1, 3, 3), mode="mirror")
    with pytest.raises(WonderlandError, match="A transposed convolution takes images"):
        reference_transposed(torch.zeros(1, 3, 4, 4), torch.zeros(2, 2, 3, 3))
    with pytest.raises(WonderlandError, match=r"^A locally connected layer of 2 x 2 places cannot read 9 patches\.$"):
        locally_connected(torch.zeros(1, 1, 4, 4), torch.zeros(2, 2, 1, 1, 2, 2))
