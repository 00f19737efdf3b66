"""The n-gram engine: ids in, a table of probabilities out. Under the n-gram task and baselines."""
