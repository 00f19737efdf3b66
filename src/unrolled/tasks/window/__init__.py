"""Fixed-window language models."""
