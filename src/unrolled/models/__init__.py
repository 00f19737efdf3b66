"""Vocabulary and settings in, losses and predictions out."""
