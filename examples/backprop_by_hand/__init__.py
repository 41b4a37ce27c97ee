"""Backpropagation of a network with one hidden layer and weight decay, derived by hand, equation by equation."""
