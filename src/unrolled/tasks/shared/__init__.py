"""What rooms share and is no task of its own."""
