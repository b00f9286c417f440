"""Edges as label distributions: structured forests, and the benchmark of BSDS500."""
