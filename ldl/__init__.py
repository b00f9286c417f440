"""Label distribution learning on Lightning."""

import os

# Read when torch loads its OpenMP runtime. Waiting threads that spin make a step up to a hundred times slower
# as soon as another process wants the cores; asleep they cost nothing that can be measured.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = "0.1.0"
