"""Generative models against what is known of them: optimal players, exact densities, distances of Gaussians."""

import math

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.models.generative import (
    VAE,
    RealNVP,
    VelocityNet,
    adversarial_step,
    discriminator_loss,
    flow_matching_loss,
    flow_samples,
    frechet_distance,
    generator_loss,
    gradient_penalty,
    memorised,
    mmd,
    optimal_discriminator,
    precision_recall,
)


def test_the_optimal_discriminator_is_the_one_that_learning_finds():
    torch.manual_seed(0)
    p, q = torch.distributions.Normal(0.0, 1.0), torch.distributions.Normal(1.0, 1.0)
    logit = nn.Linear(1, 1)
    optimizer = torch.optim.Adam(logit.parameters(), lr=0.05)
    for _ in range(300):
        loss = discriminator_loss(logit(p.sample((2000, 1)))[:, 0], logit(q.sample((2000, 1)))[:, 0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    x = torch.linspace(-1, 2, 7)
    best = optimal_discriminator(p.log_prob(x).exp(), q.log_prob(x).exp())
    assert torch.allclose(logit(x[:, None])[:, 0].sigmoid(), best, atol=0.05)
    assert torch.equal(optimal_discriminator(x.abs() + 1, x.abs() + 1), torch.full((7,), 0.5))


def test_losses_at_the_draw_and_their_definitions():
    d = torch.tensor([0.3, -1.2])
    assert discriminator_loss(torch.zeros(4), torch.zeros(4)).item() == pytest.approx(math.log(2))
    assert generator_loss(torch.zeros(4)).item() == pytest.approx(math.log(2))
    assert generator_loss(d, "minimax").item() == pytest.approx((1 - d.sigmoid()).log().mean().item())
    assert generator_loss(d, "hinge").item() == pytest.approx(-d.mean().item())
    assert discriminator_loss(d, -d, "wasserstein").item() == pytest.approx(-2 * d.mean().item())
    assert discriminator_loss(torch.tensor([2.0]), torch.tensor([-2.0]), "hinge").item() == 0
    slope = torch.tensor([3.0, 4.0])
    assert gradient_penalty(lambda x: x @ slope, torch.randn(5, 2), torch.randn(5, 2)).item() == pytest.approx(16.0)
    with pytest.raises(WonderlandError) as told:
        generator_loss(d, "kind")
    assert (
        str(told.value) == "There is no adversarial loss 'kind'. Known are minimax, nonsaturating, wasserstein, hinge."
    )


def test_the_gan_of_the_book_ends_in_a_draw():
    torch.manual_seed(0)
    a = torch.tensor([[1.0, 2.0], [-0.1, 0.5]])
    data = torch.randn(1000, 2) @ a + torch.tensor([1.0, 2.0])
    generator = nn.Linear(2, 2)
    discriminator = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 1))
    for module in (generator, discriminator):
        for weight in module.parameters():
            nn.init.normal_(weight, 0, 0.02)
    optimizers = (torch.optim.Adam(generator.parameters(), 0.005), torch.optim.Adam(discriminator.parameters(), 0.05))
    for _ in range(20):
        for real in data[torch.randperm(1000)].split(8):
            losses = adversarial_step(generator, discriminator, optimizers, real, torch.randn(len(real), 2))
    with torch.no_grad():
        made = generator(torch.randn(1000, 2))
        final = discriminator_loss(discriminator(data).flatten(), discriminator(made).flatten())
    assert final.item() == pytest.approx(math.log(2), abs=0.03)
    assert losses["generator"] == pytest.approx(math.log(2), abs=0.15)
    covariance = torch.tensor([[1.01, 1.95], [1.95, 4.25]])
    assert ((generator.weight @ generator.weight.T).detach() - covariance).norm() / covariance.norm() < 0.15


def test_a_flow_gives_exact_densities_that_sum_to_one():
    torch.manual_seed(0)
    flow = RealNVP(features=2, couplings=4, hidden=16).double()
    for net in flow.nets:
        nn.init.normal_(net[-1].weight, 0, 0.3)
    x = torch.randn(5, 2, dtype=torch.float64)
    assert torch.allclose(flow.inverse(flow.encode(x)), x)
    jacobian = torch.stack([torch.autograd.functional.jacobian(lambda r: flow.encode(r[None])[0], row) for row in x])
    assert torch.allclose(flow.pushed(x)[1], jacobian.det().abs().log(), atol=1e-8)
    line = torch.linspace(-9, 9, 181, dtype=torch.float64)
    grid = torch.cartesian_prod(line, line)
    assert flow.log_prob(grid).exp().sum().item() * 0.1**2 == pytest.approx(1.0, abs=0.01)


def test_the_bound_of_a_vae_lies_below_the_likelihood_and_grows():
    torch.manual_seed(0)
    x = torch.randn(256, 1) @ torch.tensor([[1.0, 1.0]]) + 0.3 * torch.randn(256, 2)
    model = VAE(features=2, dim=1, hidden=32)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    before = model.bound(x).mean().item()
    for _ in range(300):
        loss = -model.bound(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    truth = torch.distributions.MultivariateNormal(torch.zeros(2), torch.cov(x.T)).log_prob(x).mean().item()
    assert before < model.bound(x).mean().item() < truth + 0.1
    assert model.bound(x).mean().item() > truth - 0.6
    assert model.sample(10).shape == (10, 2)


def test_flow_matching_carries_noise_to_data():
    torch.manual_seed(0)
    centres = torch.tensor([[2.0, 0.0], [-2.0, 0.0]])
    labels = torch.randint(2, (2000,))
    x = centres[labels] + 0.2 * torch.randn(2000, 2)
    model = VelocityNet(features=2, classes=2, hidden=32, depth=2)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(400):
        rows = torch.randint(2000, (256,))
        loss = flow_matching_loss(model, x[rows], labels[rows] + 1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    free = flow_samples(model, torch.randn(400, 2), steps=20)
    assert frechet_distance(free, x) < 0.3
    told = flow_samples(model, torch.randn(200, 2), steps=20, labels=torch.full((200,), 2), guidance=1.5)
    assert (told[:, 0] < 0).float().mean() > 0.97


def test_distances_are_small_within_and_large_between():
    draw = torch.Generator().manual_seed(0)
    a, b = (torch.randn(300, 3, generator=draw) for _ in range(2))
    assert abs(mmd(a, b)) < 0.01 < mmd(a, b + 1)
    assert frechet_distance(a, b) < 0.2
    moved = a.mean(0).square().sum().item()
    assert frechet_distance(a, 2 * a) == pytest.approx(torch.cov(a.T).trace().item() + moved, rel=1e-4)
    precision, recall = precision_recall(a, 0.1 * b)
    assert precision > 0.95 > 0.5 > recall
    assert memorised(a[:50], a, b)[0] == 1.0
    assert torch.equal(memorised(a[:50], a, b)[1], torch.arange(50))
    assert 0.3 < memorised(torch.randn(300, 3, generator=draw), a, b)[0] < 0.7
    with pytest.raises(WonderlandError, match="Two sets of at least two rows with the same features are compared"):
        mmd(a, b[:, :2])
