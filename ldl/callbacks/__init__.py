"""Lightning callbacks: what drives heads that learn by more than gradients, and what every run needs."""

from ldl.callbacks.calibrate import Calibrate
from ldl.callbacks.compile import Compile, Compiled
from ldl.callbacks.conform import Conform, Units
from ldl.callbacks.drivers import drivers
from ldl.callbacks.feature_smoothing import FeatureSmoothing
from ldl.callbacks.fit_head import FitHead
from ldl.callbacks.leaf_update import LeafUpdate
from ldl.callbacks.moving_average import MovingAverage
from ldl.callbacks.resume import Resume, write_down
from ldl.callbacks.settle import Settle

__all__ = [
    "Calibrate", "Compile", "Compiled", "Conform", "FeatureSmoothing", "FitHead", "LeafUpdate", "MovingAverage",
    "Resume", "Settle", "Units", "drivers", "write_down",
]  # fmt: skip
