"""Edges as label distributions: detectors, and the benchmark that judges them."""
