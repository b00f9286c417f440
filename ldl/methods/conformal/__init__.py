"""Calibrated prediction intervals and label sets by conformal prediction."""

from ldl.methods.conformal.calibration import Conformal, interval_columns
from ldl.methods.conformal.cross import CrossConformal
from ldl.methods.conformal.scores import predicted_set

__all__ = ["Conformal", "CrossConformal", "interval_columns", "predicted_set"]
