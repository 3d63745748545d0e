"""What every test shares: one thread per test process, and Hypothesis without chance or memory."""

import os

# Set before NumPy or PyTorch make their thread pools: the suite runs in several processes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

from hypothesis import HealthCheck, settings

# The same examples on every machine and every run; no deadline, since a first call may compile a kernel.
settings.register_profile(
    "suite", derandomize=True, database=None, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
# More of them, and new ones each time: `pytest --hypothesis-profile=search`.
settings.register_profile("search", parent=settings.get_profile("suite"), derandomize=False, max_examples=2000)
settings.load_profile("suite")
