"""Intervals and sets of labels that hold the truth as often as they say, from rows that trained nothing."""

from ldl.methods.conformal.calibration import Conformal, interval_columns
from ldl.methods.conformal.cross import CrossConformal
from ldl.methods.conformal.sets import predicted_set

__all__ = ["Conformal", "CrossConformal", "interval_columns", "predicted_set"]
