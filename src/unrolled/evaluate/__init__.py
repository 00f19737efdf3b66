"""Scores with their recipes, and the baselines beside them."""
