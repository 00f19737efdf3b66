"""Recurrent language models."""
