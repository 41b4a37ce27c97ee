"""Generative models: exact likelihoods, samplers of a known distribution, order of reading, classes, contracts."""

import math

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.models.generative import (
    DCGAN,
    VAE,
    VQVAE,
    Diffusion,
    FlowMatching,
    PixelCNN,
    RealNVP,
    TokenGrid,
    VelocityUNet,
)

SHAPE = [1, 6, 5]
MODELS = {
    "DCGAN": lambda: DCGAN(shape=SHAPE, classes=2, latent=4, dim=4),
    "Diffusion": lambda: Diffusion(shape=SHAPE, classes=2, net=VelocityUNet.spec(classes=2, dim=8, depth=1), steps=3),
    "FlowMatching": lambda: FlowMatching(
        shape=SHAPE, classes=2, net=VelocityUNet.spec(classes=2, dim=8, depth=1), steps=3
    ),
    "PixelCNN": lambda: PixelCNN(shape=SHAPE, classes=2, levels=4, dim=8, depth=1),
    "RealNVP": lambda: RealNVP(features=30, couplings=2, hidden=8, dequantise=0.01),
    "VAE": lambda: VAE(features=30, dim=2, hidden=8),
    "VQVAE": lambda: VQVAE(shape=SHAPE, classes=2, codes=4, dim=4),
}


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_model_keeps_the_contract(name):
    torch.manual_seed(0)
    model, x = MODELS[name](), torch.rand(4, *SHAPE) * 2 - 1
    labels = torch.tensor([1, 2, 0, 1]) if model.classes else None
    losses = model.train().objective(x, labels)
    assert losses.shape == (4,)
    losses.mean().backward()
    if name != "VQVAE":  # its codes learn through the quantiser's own loss, one of which no vector may be near
        assert all(parameter.grad is not None for parameter in model.parameters() if parameter.requires_grad)
    model.eval()
    scores = model.score(x, labels)
    assert scores.shape == (4,)
    assert torch.equal(scores, model.score(x, labels))
    if name != "VQVAE":  # its loss of codes is a mean over the batch
        assert torch.allclose(scores[:1], model.score(x[:1], None if labels is None else labels[:1]), atol=1e-5)
    samples = model.sample(3, None if labels is None else labels[:3])
    assert samples.reshape(3, *SHAPE).isfinite().all()
    assert math.isfinite(model.held_out(x, labels))
    with torch.device("meta"):
        assert MODELS[name]() is not None


def test_samplers_reach_a_gaussian_whose_velocity_and_noise_are_known():
    """For rows of N(m, s^2) the best velocity and the best noise are linear in the row, so samples have the mean and deviation."""
    mean, deviation = 1.5, 0.5

    class Velocity(nn.Module):
        def forward(self, x, t, labels):
            t = t[:, None]
            variance = (1 - t) ** 2 + (t * deviation) ** 2
            return mean + (t * deviation**2 - (1 - t)) / variance * (x - t * mean)

    class Noise(nn.Module):
        def forward(self, x, t, labels):
            alpha, sigma = (t * math.pi / 2).cos()[:, None], (t * math.pi / 2).sin()[:, None]
            noise = sigma * (x - alpha * mean) / ((alpha * deviation) ** 2 + sigma**2)
            return (noise - sigma * x) / alpha.clamp(min=1e-3)

    flow, diffusion = FlowMatching(shape=[1], steps=50), Diffusion(shape=[1], steps=200)
    flow.net, diffusion.net = Velocity(), Noise()
    for model in (flow, diffusion):
        torch.manual_seed(0)
        samples = model.sample(20_000)
        assert samples.mean().item() == pytest.approx(mean, abs=0.03)
        assert samples.std().item() == pytest.approx(deviation, abs=0.02)
    diffusion.eta = 1.0
    torch.manual_seed(0)
    samples = diffusion.sample(20_000)
    assert samples.mean().item() == pytest.approx(mean, abs=0.03)
    assert samples.std().item() == pytest.approx(deviation, abs=0.02)


def test_diffusion_learns_the_velocity_from_which_its_noise_follows():
    """Where all data are one point, the network can be right exactly: the loss is 0, and every sample is the point."""
    point = torch.tensor([0.5, -0.3])

    class Exact(nn.Module):
        def forward(self, x, t, labels):
            alpha, sigma = (t * math.pi / 2).cos()[:, None], (t * math.pi / 2).sin()[:, None]
            return alpha * (x - alpha * point) / sigma.clamp(min=1e-4) - sigma * point

    model = Diffusion(shape=[2], steps=20)
    model.net = Exact()
    torch.manual_seed(0)
    assert float(model.objective(point.expand(500, 2)).max()) < 1e-4
    assert torch.allclose(model.sample(5), point.expand(5, 2), atol=1e-4)
    noise = torch.randn(4, 2)
    alpha, sigma = model.shares(torch.full((4,), 0.3), noise)
    assert torch.allclose(model.noise(alpha * point + sigma * noise, torch.full((4,), 0.3), None), noise, atol=1e-4)


def test_guidance_moves_from_the_velocity_without_a_class():
    model = FlowMatching(shape=[1], classes=1, steps=1)
    model.velocity = lambda x, t, labels: torch.zeros_like(x) if labels is None else torch.ones_like(x)
    torch.manual_seed(0)
    start = torch.randn(4, 1)
    for guidance in (1.0, 3.0):
        torch.manual_seed(0)
        assert torch.allclose(model.sample(4, torch.ones(4, dtype=torch.long), guidance=guidance), start + guidance)


def test_a_pixel_depends_on_those_read_before_it_only():
    torch.manual_seed(0)
    grid = TokenGrid(levels=3, dim=6, depth=2, kernel=3)
    tokens = torch.randint(3, (1, 5, 4))
    for place in range(20):
        changed = tokens.clone()
        changed.view(-1)[place] = (changed.view(-1)[place] + 1) % 3
        moved = (grid(tokens) - grid(changed)).abs().sum(1).view(-1) > 1e-7
        assert not moved[: place + 1].any()


def test_the_probabilities_of_all_images_sum_to_one():
    torch.manual_seed(0)
    model = PixelCNN(shape=[1, 2, 2], levels=2, dim=6, depth=1, kernel=3)
    every = torch.tensor([[(i >> k) & 1 for k in range(4)] for i in range(16)]).view(16, 1, 2, 2).float() * 2 - 1
    bits = model.score(every) * 4
    assert (2**-bits).sum().item() == pytest.approx(1.0, abs=1e-5)


def test_colours_come_back_from_tokens():
    model = PixelCNN(shape=[3, 2, 4], levels=256, dim=4, depth=1)
    x = torch.randint(256, (2, 3, 2, 4)).float() / 127.5 - 1
    assert torch.allclose(model.pixels(model.tokens(x)), x, atol=1e-6)


def test_sizes_of_the_book():
    """D2L 20.2: 64 x 64 colour images, 100 codes, 64 channels; the book's layers counted by hand."""
    model = DCGAN(shape=[3, 64, 64], latent=100, dim=64)
    generating, judging = (sum(p.numel() for p in player) for player in model.players())
    norms = 2 * (512 + 256 + 128 + 64)
    convolutions = 16 * (100 * 512 + 512 * 256 + 256 * 128 + 128 * 64 + 64 * 3)
    assert generating - 100 == convolutions + norms  # the vector of no class is one of 100
    assert judging - 512 == 16 * (3 * 64 + 64 * 128 + 128 * 256 + 256 * 512 + 512) + norms


def test_a_quantised_autoencoder_reads_and_writes_tokens():
    torch.manual_seed(0)
    model = VQVAE(shape=[1, 7, 9], codes=5, dim=4)
    tokens = model.encode(torch.randn(2, 1, 7, 9))
    assert tokens.shape == (2, 2, 3)
    assert tokens.max() < 5
    assert model.decode(tokens).shape == (2, 1, 7, 9)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: FlowMatching(shape=[0]), "FlowMatching takes rows of (features,) or images of (channels, height, width), not [0]."),
        (lambda: FlowMatching(shape=[2], classes=-1), "FlowMatching has 0 or more classes, not -1."),
        (lambda: FlowMatching(shape=[2], steps=0), "FlowMatching hides labels from a share of rows, and samples in 1 to 10,000 steps: not 0.1 and 0."),
        (lambda: Diffusion(shape=[2], eta=2.0), "Diffusion samples in 1 to 10,000 steps, with eta and hide from 0 to 1."),
        (lambda: DCGAN(shape=[2]), "DCGAN makes images: rows of features are for FlowMatching, Diffusion, VAE and RealNVP."),
        (lambda: PixelCNN(shape=[1, 2, 2], levels=1), "PixelCNN draws images of 2 to 256 levels."),
        (lambda: VQVAE(shape=[2]), "VQVAE encodes images: rows of features are for VAE."),
        (lambda: TokenGrid(levels=2, kernel=2), "A masked convolution has an odd kernel of at least 3, not 2."),
    ],
)  # fmt: skip
def test_what_cannot_be_built(build, words):
    with pytest.raises(WonderlandError) as told:
        build()
    assert str(told.value) == words
