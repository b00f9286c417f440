"""Lightning callbacks: some drive heads that learn by more than gradients, others belong to every run."""

from ldl.callbacks.averages import FeatureSmoothing, MovingAverage
from ldl.callbacks.best_epoch import BestEpoch
from ldl.callbacks.build import Build, head_callbacks
from ldl.callbacks.calibration import Calibrate, Units
from ldl.callbacks.compile import Compile, Compiled
from ldl.callbacks.fit_head import FitHead
from ldl.callbacks.leaf_update import STATE_KEY, LeafUpdate
from ldl.callbacks.steps import MEASURED_KEY, CheckFinite, Resume, log_epoch
from ldl.moved import old_names

__all__ = [
    "MEASURED_KEY", "STATE_KEY", "BestEpoch", "Build", "Calibrate", "CheckFinite", "Compile", "Compiled",
    "FeatureSmoothing", "FitHead", "LeafUpdate", "MovingAverage", "Resume", "Units", "head_callbacks", "log_epoch",
]  # fmt: skip
__getattr__ = old_names("ldl.callbacks")
