"""Label embedding by multi-scale locality preservation (Peng et al. 2018): every table and figure."""

from __future__ import annotations

from benchmarks.common.items import Paper

PAPER = Paper("mslp", "Multi-Scale Locality Preservation", ())
