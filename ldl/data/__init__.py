"""Data modules: data sets, their evaluation protocols and their batches."""

from ldl.data.bags import Bags
from ldl.data.base import LDLDataModule, Loaded
from ldl.data.edges.bsds500 import BSDS500
from ldl.data.faces import FGNET, FaceFolder, Morph, Pointing04, UTKFace
from ldl.data.picture_folder import PictureFolder
from ldl.data.synthetic import MixedDigits, PosedFaces, RotatedDigits, ShiftedDigits, ShiftedFaces
from ldl.data.tables.tabular import TabularLDL
from ldl.data.tables.tabular_values import FGNETAAM, TabularValues

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
