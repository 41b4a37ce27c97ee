"""Recordings of sound: with a class, a number or a text each."""
