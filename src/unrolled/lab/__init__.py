"""The lecture notes made executable."""
