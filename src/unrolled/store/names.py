"""What the files of a model folder are called, and those that a run adds to it."""

SETTINGS = "config.toml"
WEIGHTS = "model.safetensors"
METRICS = "metrics.json"
CARD = "README.md"
MODEL_FILES = (SETTINGS, WEIGHTS, METRICS, CARD)  # beside what a task adds

DATA = "data.json"  # by what to know the data again
METRIC_ROWS = "metrics.jsonl"  # a row a step, a row an evaluation
TIMES = "times.jsonl"
