"""Charts of a run. Each function writes one PNG and returns its path."""

from ldl.charts.answer import answer
from ldl.charts.classes import error_curves, likelihood, roc
from ldl.charts.errors import bands, cumulative_score, values
from ldl.charts.faces import distributions, faces, prediction
from ldl.charts.folds import folds
from ldl.charts.found import groups, score_maps
from ldl.charts.maps import maps
from ldl.charts.overview import overview
from ldl.charts.photographs import photograph
from ldl.charts.reliability import calibration
from ldl.charts.training import learning_curves, leaves

__all__ = [
    "answer",
    "bands",
    "calibration",
    "cumulative_score",
    "distributions",
    "error_curves",
    "faces",
    "folds",
    "groups",
    "learning_curves",
    "leaves",
    "likelihood",
    "maps",
    "overview",
    "photograph",
    "prediction",
    "roc",
    "score_maps",
    "values",
]
