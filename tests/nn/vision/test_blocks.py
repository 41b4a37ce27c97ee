"""Blocks of convolutional networks by hand: depthwise between pointwise convolutions, grouped bottlenecks."""

import torch
import torch.nn.functional as F

from wonderland import nn


def normed(x):
    """What a fresh batch norm does in use."""
    return x / (1 + 1e-5) ** 0.5


def test_an_inverted_residual_is_depthwise_between_two_pointwise_convolutions():
    torch.manual_seed(0)
    block, x = nn.InvertedResidual(4, 4, expansion=3).eval(), torch.randn(2, 4, 7, 7)
    wide, depth, narrow = [module.weight for module in block.modules() if isinstance(module, torch.nn.Conv2d)]
    assert [tuple(weight.shape) for weight in (wide, depth, narrow)] == [(12, 4, 1, 1), (12, 1, 3, 3), (4, 12, 1, 1)]
    h = F.relu6(normed(F.conv2d(x, wide)))
    h = F.relu6(normed(F.conv2d(h, depth, padding=1, groups=12)))
    assert torch.allclose(block(x), x + normed(F.conv2d(h, narrow)), atol=1e-5)


def test_groups_divide_the_weights_of_a_bottleneck():
    whole, grouped = (nn.BottleneckBlock(8, 8, width=8, groups=groups) for groups in (1, 4))
    sizes = [block.convs[1].conv.weight.numel() for block in (whole, grouped)]
    assert sizes == [8 * 8 * 9, 8 * 2 * 9]
    x = torch.randn(1, 8, 5, 5)
    first = grouped.eval().convs[0](x)
    own = [
        F.conv2d(first[:, 2 * g : 2 * g + 2], grouped.convs[1].conv.weight[2 * g : 2 * g + 2], padding=1)
        for g in range(4)
    ]
    assert torch.allclose(grouped.convs[1](first), F.relu(normed(torch.cat(own, 1))), atol=1e-5)
