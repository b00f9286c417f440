"""Charts of a run. Each function writes one PNG and returns its path."""

from ldl.charts.images import groups, maps, photograph, score_maps
from ldl.charts.instances import answer, distributions, faces
from ldl.charts.raters import rater_differences
from ldl.charts.results import (
    bands,
    calibration,
    confusion,
    cumulative_score,
    folds,
    intervals,
    learning_curves,
    leaves,
    likelihood,
    overview,
    roc,
    values,
)
from ldl.charts.votes import rater_equivalence

__all__ = [
    "answer",
    "bands",
    "calibration",
    "confusion",
    "cumulative_score",
    "distributions",
    "faces",
    "folds",
    "groups",
    "intervals",
    "learning_curves",
    "leaves",
    "likelihood",
    "maps",
    "overview",
    "photograph",
    "rater_equivalence",
    "rater_differences",
    "roc",
    "score_maps",
    "values",
]
