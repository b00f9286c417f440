"""Data modules: data sets, their evaluation protocols and their batches."""

from ldl.data.bags import Bags
from ldl.data.base import LDLDataModule, Loaded
from ldl.data.edges.bsds500 import BSDS500
from ldl.data.faces.ages import FGNET, FaceFolder, UTKFace
from ldl.data.faces.morph import Morph
from ldl.data.faces.pointing04 import Pointing04
from ldl.data.images.listed import ImageLDL, ImageValues
from ldl.data.images.sets import CIFAR10H, FERPlus
from ldl.data.picture_folder import PictureFolder
from ldl.data.synthetic import MixedDigits, PosedFaces, RotatedDigits, ShiftedDigits, ShiftedFaces
from ldl.data.tables.lidc import LIDC
from ldl.data.tables.tabular import TabularLDL
from ldl.data.tables.tabular_values import FGNETAAM, TabularValues

__all__ = [
    "BSDS500",
    "CIFAR10H",
    "FGNET",
    "FGNETAAM",
    "Bags",
    "FERPlus",
    "FaceFolder",
    "ImageLDL",
    "ImageValues",
    "LDLDataModule",
    "LIDC",
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
