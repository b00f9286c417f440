"""What is measured of predictions. A measure of one's own is one :class:`Measure`, given to :func:`register`."""

from ldl.metrics.measure import Measure
from ldl.metrics.registry import DISTRIBUTION_METRICS, measures, register

__all__ = ["DISTRIBUTION_METRICS", "Measure", "measures", "register"]
