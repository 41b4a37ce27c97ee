"""Coverage and size of every conformal method over 200 splits, in one table."""
