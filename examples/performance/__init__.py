"""D2L 13 on a CPU: caches, precision, batches, and sums over processes."""
