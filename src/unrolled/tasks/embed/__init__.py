"""Word vectors, learned from plain text."""
