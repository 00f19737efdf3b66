"""The figures of the notes, drawn from networks that run: every number in them is computed."""
