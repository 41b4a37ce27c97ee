"""Generative models: adversarial losses, flows, and measures of samples."""

from wonderland.models.generative.adversarial import (
    adversarial_step,
    discriminator_loss,
    generator_loss,
    gradient_penalty,
    optimal_discriminator,
)
from wonderland.models.generative.dcgan import DCGAN
from wonderland.models.generative.diffusion import Diffusion
from wonderland.models.generative.flow_matching import FlowMatching, flow_matching_loss, flow_samples
from wonderland.models.generative.measures import frechet_distance, memorised, mmd, precision_recall
from wonderland.models.generative.model import GenerativeModel
from wonderland.models.generative.pixelcnn import PixelCNN, TokenGrid
from wonderland.models.generative.realnvp import RealNVP
from wonderland.models.generative.vae import VAE
from wonderland.models.generative.velocity import VelocityNet
from wonderland.models.generative.velocity_unet import VelocityUNet
from wonderland.models.generative.vqvae import VQVAE

__all__ = [
    "DCGAN",
    "VAE",
    "VQVAE",
    "Diffusion",
    "FlowMatching",
    "GenerativeModel",
    "PixelCNN",
    "RealNVP",
    "TokenGrid",
    "VelocityNet",
    "VelocityUNet",
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
