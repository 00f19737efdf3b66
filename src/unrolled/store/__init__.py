"""Bytes that are whole or absent: files, manifest, tensors. Knows no task."""
