"""Structured random forests (Chen et al. 2018): every table and figure."""

from __future__ import annotations

from benchmarks.common.items import Paper

PAPER = Paper("structrf", "Structured Random Forest", ())
