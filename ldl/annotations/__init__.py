"""Votes of several annotators: reading, agreement, and the comparison of a model with annotators."""

from ldl.annotations.agreement import entropy_bias, krippendorff_alpha, majority_accuracy, vote_nll
from ldl.annotations.dawid_skene import DawidSkene
from ldl.annotations.dirichlet import DirichletMultinomial
from ldl.annotations.equivalence import RaterEquivalence, most_raters, rater_equivalence, worth
from ldl.annotations.exports import Export, read_export
from ldl.annotations.mixture import DirichletMixture
from ldl.annotations.next_votes import NextVotes, expected_gain, rank_next
from ldl.annotations.power import PowerCurves, held_out_nll, measure_power
from ldl.annotations.reading import read_annotations
from ldl.annotations.summary import power_curve, summarize
from ldl.annotations.votes import Annotations, Layout, SingleVotes, vote_counts

__all__ = [
    "Annotations",
    "DawidSkene",
    "DirichletMixture",
    "DirichletMultinomial",
    "Export",
    "Layout",
    "NextVotes",
    "PowerCurves",
    "RaterEquivalence",
    "SingleVotes",
    "entropy_bias",
    "expected_gain",
    "held_out_nll",
    "krippendorff_alpha",
    "majority_accuracy",
    "measure_power",
    "most_raters",
    "power_curve",
    "rank_next",
    "rater_equivalence",
    "read_annotations",
    "read_export",
    "summarize",
    "vote_counts",
    "vote_nll",
    "worth",
]
