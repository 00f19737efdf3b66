"""Taggers of words and spans."""
