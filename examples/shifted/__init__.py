"""A planted shift of rows and of classes: found, estimated, and corrected."""
