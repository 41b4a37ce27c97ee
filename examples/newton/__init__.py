"""Newton's method and preconditioning on the books' functions: few steps, if the curvature is positive."""
