"""Names by a small transformer: what makemore.py trains when it is asked for nothing else."""
