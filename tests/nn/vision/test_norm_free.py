"""Blocks without normalisation keep the spread of signals, see nothing of the batch, and begin as their shortcuts."""

import torch

from wonderland import models, nn
from wonderland.nn.vision.norm_free import RELU_GAIN


def test_kernels_are_standardised_whatever_the_weights():
    conv = nn.ScaledConvolution(4, 8)
    with torch.no_grad():
        conv.conv.weight.mul_(7).add_(3)
    kernels = conv.kernels().flatten(1)
    assert torch.allclose(kernels.mean(1), torch.zeros(8), atol=1e-6)
    assert torch.allclose(kernels.square().sum(1), torch.ones(8), atol=1e-3)


def test_the_gain_of_a_rectifier_restores_its_spread():
    x = torch.randn(200_000, generator=torch.Generator().manual_seed(0))
    assert abs(x.relu().mul(RELU_GAIN).std().item() - 1) < 0.01


def test_the_spread_is_the_predicted_one_through_many_blocks():
    torch.manual_seed(0)
    x, beta = torch.randn(16, 32, 16, 16), 1.0
    for _ in range(8):
        block = nn.NormFreeBlock(32, 32, alpha=0.5, beta=beta, gain=1.0)
        x, beta = block(x).detach(), block.beta_after
    assert abs(x.std().item() / beta - 1) < 0.15
    assert beta > 1.5
    assert nn.NormFreeBlock(32, 64, stride=2, beta=beta).beta_after < 1.1


def test_a_block_begins_as_its_shortcut():
    x = torch.randn(2, 4, 6, 6)
    assert torch.equal(nn.NormFreeBlock(4, 4)(x), x)


def test_an_image_has_the_same_scores_among_others_also_in_training():
    torch.manual_seed(0)
    net = models.NormFreeResNet(3, depths=[1, 1], dims=[8, 16], stem="small").train()
    x = torch.randn(4, 3, 16, 16)
    assert torch.allclose(net(x)[:1], net(x[:1]), atol=1e-5)
    assert torch.allclose(net.eval()(x), net.train()(x), atol=1e-6)
