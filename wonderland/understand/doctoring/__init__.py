"""The parts of `doctor`: a copy of the training step, its trace, and one file for each kind of check."""
