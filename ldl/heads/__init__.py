"""The heads that ldl ships, one a file."""

from ldl.heads.aa_knn import AAKNN
from ldl.heads.bagged import Bagged
from ldl.heads.boosted_trees import BoostedTrees
from ldl.heads.cost_sensitive_forest import CostSensitiveForest
from ldl.heads.dsna import DSNA
from ldl.heads.ldlf import LDLF
from ldl.heads.max_ent import MaxEnt
from ldl.heads.mean_predictor import MeanPredictor
from ldl.heads.milboost import MILBoost
from ldl.heads.mirrored import Mirrored
from ldl.heads.mplboost import MPLBoost
from ldl.heads.mslp import MSLP
from ldl.heads.pool import Pool
from ldl.heads.scaled import Scaled
from ldl.heads.softmax import Softmax
from ldl.heads.structrf import StructRF
from ldl.heads.structured_edges import StructuredEdges
from ldl.heads.trained import Trained

__all__ = [
    "AAKNN",
    "DSNA",
    "LDLF",
    "MSLP",
    "Bagged",
    "BoostedTrees",
    "CostSensitiveForest",
    "MILBoost",
    "MPLBoost",
    "MaxEnt",
    "MeanPredictor",
    "Mirrored",
    "Pool",
    "Scaled",
    "Softmax",
    "StructRF",
    "StructuredEdges",
    "Trained",
]
