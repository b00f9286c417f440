"""Label distribution learning in scikit-learn's conventions."""

from ldl.estimator.regressor import LDLRegressor

__all__ = ["LDLRegressor"]
