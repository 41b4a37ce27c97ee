"""Methods of differentiation compared: finite differences, symbolic, and automatic in forward and reverse mode."""
