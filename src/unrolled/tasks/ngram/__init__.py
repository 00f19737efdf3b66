"""Counted n-gram language models."""
