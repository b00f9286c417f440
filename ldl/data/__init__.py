"""Data modules, one data set a file."""

from ldl.data.base import LDLDataModule
from ldl.data.bsds500 import BSDS500
from ldl.data.faces import FGNET, FaceFolder, Morph, UTKFace
from ldl.data.picture_folder import PictureFolder
from ldl.data.rotated_digits import RotatedDigits
from ldl.data.tabular import TabularLDL

__all__ = [
    "BSDS500",
    "FGNET",
    "FaceFolder",
    "LDLDataModule",
    "Morph",
    "PictureFolder",
    "RotatedDigits",
    "TabularLDL",
    "UTKFace",
]
