"""A pole is balanced by policy gradients and by Q-learning with a network."""
