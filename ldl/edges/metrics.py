"""The metrics of edge maps that :class:`ldl.edges.report.EdgeReport` logs, registered by their names."""

from __future__ import annotations

from ldl.edges.benchmark.votes import QUESTIONS
from ldl.metrics.metric import Metric
from ldl.metrics.registry import register

EDGE_METRICS = ("ods", "ois", "ap", "r50")
"""Metrics of the benchmark, of thinned maps."""
CRISP = ("crisp_ods", "crisp_ois", "crisp_ap", "crisp_ac")
"""Metrics of the maps without thinning: CEval, and average crispness."""
SCORES = ("nll", "brier", "ece")
"""Scores of the map as the probability of a vote, for each of :data:`ldl.edges.benchmark.votes.QUESTIONS`."""
VOTES = tuple(f"{question}_{score}" for question in QUESTIONS for score in SCORES)
DISAGREEMENT = "disagreement"
"""Correlation of the predicted disagreement of the annotators with the true one."""
LOGGED_METRICS = (*EDGE_METRICS, *CRISP, *VOTES, DISAGREEMENT)

for name in LOGGED_METRICS:
    register(Metric(name, None, higher_is_better=name not in VOTES, main=name == "ods"))
