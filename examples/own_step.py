"""Your own training step in the same loop: a GAN that reaches its equilibrium, with exact resume.

The target is a normal distribution in the plane; the generator is linear, the discriminator small (D2L 20.1).
"""

import math

import torch
from torch import nn

from wonderland.train import State, run

MIXING, SHIFT = torch.tensor([[1.0, 2.0], [-0.1, 0.5]]), torch.tensor([1.0, 2.0])


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Real points and noise for one step: a function of its number, so that an interrupted run resumes exactly."""
    random = torch.Generator().manual_seed(step)
    return torch.randn(256, 2, generator=random) @ MIXING + SHIFT, torch.randn(256, 2, generator=random)


def gan_step(state: State, data: tuple[torch.Tensor, torch.Tensor]) -> dict[str, float]:
    """One update of the critic and one of the generator."""
    real, noise = data
    bce = nn.functional.binary_cross_entropy_with_logits
    ones, zeros = torch.ones(256, 1), torch.zeros(256, 1)
    state.critic_optimizer.zero_grad()
    fake = state.generator(noise)
    critic = (bce(state.critic(real), ones) + bce(state.critic(fake.detach()), zeros)) / 2
    critic.backward()
    state.critic_optimizer.step()
    state.generator_optimizer.zero_grad()
    generator = bce(state.critic(fake), ones)
    generator.backward()
    state.generator_optimizer.step()
    return {"loss": critic.item(), "generator": generator.item()}


torch.manual_seed(0)
generator = nn.Linear(2, 2)
critic = nn.Sequential(nn.Linear(2, 5), nn.Tanh(), nn.Linear(5, 3), nn.Tanh(), nn.Linear(3, 1))
state = State(
    generator=generator,
    critic=critic,
    generator_optimizer=torch.optim.Adam(generator.parameters(), lr=0.005, betas=(0.5, 0.999)),
    critic_optimizer=torch.optim.Adam(critic.parameters(), lr=0.05, betas=(0.5, 0.999)),
)
outcome = run(gan_step, state, batch, steps=1500, folder="runs/own-step", progress=True)
last = outcome.rows[-1]
print(f"critic {last['loss']:.3f}, generator {last['generator']:.3f}; the equilibrium is ln 2 = {math.log(2):.3f}")
assert abs(last["loss"] - math.log(2)) < 0.05
assert abs(last["generator"] - math.log(2)) < 0.1
