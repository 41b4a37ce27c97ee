"""The first networks of D2L on Fashion-MNIST, at the settings of the book."""
