"""Edges in images: BSDS500, structured forests, the benchmark, and votes of pixels."""

from ldl.edges.bsds500 import BSDS500
from ldl.edges.pixel_features import PixelFeatures
from ldl.edges.structured_edges import StructuredEdges

__all__ = ["BSDS500", "PixelFeatures", "StructuredEdges"]
