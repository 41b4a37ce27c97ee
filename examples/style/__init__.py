"""Neural style transfer between two photographs."""
