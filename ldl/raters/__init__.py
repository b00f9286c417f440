"""Models of raters: the distribution of each rater's votes, and of the population of raters."""

from ldl.raters.model import Raters
from ldl.raters.table import RaterTable

__all__ = ["RaterTable", "Raters"]
