"""The tuners of D2L 19 on LeNet, in small: random search, successive halving, ASHA with two workers."""
