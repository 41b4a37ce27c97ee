"""Clips: short videos as folders of frames or as GIF files, with a class each."""
