"""Backpropagation through time: whole, cut at regular places, and cut at random without a bias."""
