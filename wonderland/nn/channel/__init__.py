"""Channel mixers and activations: modules that act on each position alone."""
