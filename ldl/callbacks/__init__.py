"""Lightning callbacks: what drives heads that learn by more than gradients, and what a run writes."""

from ldl.callbacks.fit_head import FitHead
from ldl.callbacks.leaf_update import LeafUpdate

__all__ = ["FitHead", "LeafUpdate"]
