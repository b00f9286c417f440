"""Discriminative sparse neighbour approximation (Huang, Loy & Tang 2016): every table and figure."""

from __future__ import annotations

from benchmarks.common.items import Paper

PAPER = Paper("dsna", "Discriminative Sparse Neighbor Approximation", ())
