"""The heads of ldl."""

from ldl.heads.baselines import AAKNN, MeanPredictor
from ldl.heads.boosted_trees import BoostedTrees
from ldl.heads.cost_sensitive_forest import CostSensitiveForest
from ldl.heads.dsna import DSNA
from ldl.heads.ldlf import LDLF
from ldl.heads.max_ent import MaxEnt
from ldl.heads.mslp import MSLP
from ldl.heads.pool import Pool
from ldl.heads.softmax import Softmax
from ldl.heads.structrf import StructRF
from ldl.heads.trained import Trained
from ldl.heads.wrappers import Mirrored, Scaled
from ldl.moved import old_names

__all__ = [
    "AAKNN",
    "DSNA",
    "LDLF",
    "MSLP",
    "BoostedTrees",
    "CostSensitiveForest",
    "MaxEnt",
    "MeanPredictor",
    "Mirrored",
    "Pool",
    "Scaled",
    "Softmax",
    "StructRF",
    "Trained",
]

__getattr__ = old_names(__name__)
