"""Boosting on bags and for groups (Babenko et al. 2008): every table and figure."""

from __future__ import annotations

from benchmarks.common.items import Paper

PAPER = Paper("boosting", "Multiple Instance and Multiple Pose Learning", ())
