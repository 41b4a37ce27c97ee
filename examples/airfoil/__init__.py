"""Every rule of D2L's chapter on optimisation on one small regression: the noise of an airfoil from five measurements."""
