"""Flow matching, diffusion and adversarial networks on digits."""
