"""Structured random forests (Chen et al. 2018)."""
