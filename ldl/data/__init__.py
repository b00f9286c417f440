"""Data modules, one data set a file."""

from ldl.data.bags.bags import Bags
from ldl.data.base import LDLDataModule
from ldl.data.edges.bsds500 import BSDS500
from ldl.data.faces import FGNET, FaceFolder, Morph, Pointing04, UTKFace
from ldl.data.loaded import Loaded
from ldl.data.picture_folder import PictureFolder
from ldl.data.rotated_digits import RotatedDigits
from ldl.data.tables.fgnet_aam import FGNETAAM
from ldl.data.tables.tabular import TabularLDL
from ldl.data.tables.tabular_values import TabularValues
from ldl.data.trials.clutter import PosedFaces, ShiftedFaces
from ldl.data.trials.mnist import MixedDigits, ShiftedDigits

__all__ = [
    "BSDS500",
    "FGNET",
    "FGNETAAM",
    "Bags",
    "FaceFolder",
    "LDLDataModule",
    "Loaded",
    "MixedDigits",
    "Morph",
    "PictureFolder",
    "Pointing04",
    "PosedFaces",
    "RotatedDigits",
    "ShiftedDigits",
    "ShiftedFaces",
    "TabularLDL",
    "TabularValues",
    "UTKFace",
]
