"""The ways to a derivative, side by side: differences, formulas, and automatic differentiation in both directions."""
