"""The studio: a page on this machine that lists runs, compares them, follows them and tries their models."""
