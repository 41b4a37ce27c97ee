"""Digits scattered on a canvas: boxes and masks from folders of files."""
