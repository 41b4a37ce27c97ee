"""Stationary points and what they are: minima, maxima and saddles, classified by the eigenvalues of the Hessian."""
