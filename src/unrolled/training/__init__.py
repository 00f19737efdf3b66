"""The training loop and what surrounds it: steps, checkpoints, resuming. Knows no task."""
