"""Label distribution learning forests (Shen et al. 2017) and networks (Gao et al. 2017): every table and figure."""

from __future__ import annotations

from benchmarks.common.items import Paper

PAPER = Paper("ldlf", "Label Distribution Learning Forests", ())
