"""The optimizers of D2L's chapter 12 on one small regression: airfoil noise from five measurements."""
