"""Digits drawn by a language model of pixels or patches."""
