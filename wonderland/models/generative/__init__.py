"""Generative models: adversarial losses, flows, and measures of samples."""

from wonderland.models.generative.adversarial import (
    adversarial_step,
    discriminator_loss,
    generator_loss,
    gradient_penalty,
    optimal_discriminator,
)
from wonderland.models.generative.measures import frechet_distance, memorised, mmd, precision_recall
from wonderland.models.generative.realnvp import RealNVP
from wonderland.models.generative.vae import VAE
from wonderland.models.generative.velocity import VelocityNet, flow_matching_loss, flow_samples

__all__ = [
    "VAE",
    "RealNVP",
    "VelocityNet",
    "adversarial_step",
    "discriminator_loss",
    "flow_matching_loss",
    "flow_samples",
    "frechet_distance",
    "generator_loss",
    "gradient_penalty",
    "memorised",
    "mmd",
    "optimal_discriminator",
    "precision_recall",
]
