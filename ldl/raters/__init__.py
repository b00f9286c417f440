"""Models of raters: the distribution of each rater's votes, and of the population of raters."""

from ldl.raters.groups import measure_groups
from ldl.raters.model import Raters
from ldl.raters.table import RaterTable

__all__ = ["RaterTable", "Raters", "measure_groups"]
