"""Symmetries by averaging: any module becomes invariant or equivariant to a group, or to the frames of its input."""
