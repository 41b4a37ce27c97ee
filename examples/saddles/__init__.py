"""Stationary points and what they are: minima, maxima and saddles, told by the eigenvalues of the Hessian."""
