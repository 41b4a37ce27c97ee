"""Newton's method and preconditioning on the books' functions: few steps, when the curvature is what it should be."""
