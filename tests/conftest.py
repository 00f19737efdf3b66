"""What every test stands on: the same examples in every run, and nothing left in the folder."""

import os

from hypothesis import settings

# Small sizes gain nothing from a second thread, and threads that spin slow a busy machine down.
os.environ.setdefault("OMP_NUM_THREADS", "1")

settings.register_profile("unrolled", deadline=None, derandomize=True, database=None)
settings.load_profile("unrolled")
