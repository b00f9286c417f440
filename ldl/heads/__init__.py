"""The heads that ldl ships, one a file."""

from ldl.heads.ldlf import LDLF
from ldl.heads.mean_predictor import MeanPredictor
from ldl.heads.softmax import Softmax
from ldl.heads.structrf import StructRF

__all__ = ["LDLF", "MeanPredictor", "Softmax", "StructRF"]
