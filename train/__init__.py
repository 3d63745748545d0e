"""Search, self-play, learning and measurement. Imports `envs` and `models`; Ray is used in `train/workers.py` alone."""

import os

# OpenMP's threads spin while they wait. On a machine that does anything else a training step then takes up to ten
# times as long; asleep they cost nothing measurable on an idle one. PyTorch reads this when it is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
