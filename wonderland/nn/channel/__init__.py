"""Channel mixers and activations: what happens within a position."""
