"""Data modules: data sets, their evaluation protocols and their batches."""

from ldl.data.base import LDLDataModule, Loaded
from ldl.data.images.listed import ImageLDL, ImageValues
from ldl.data.images.sets import CIFAR10H, FERPlus
from ldl.data.picture_folder import PictureFolder
from ldl.data.synthetic import MixedDigits, PosedFaces, RotatedDigits, ShiftedDigits, ShiftedFaces
from ldl.data.tables.lidc import LIDC
from ldl.data.tables.tabular import TabularLDL
from ldl.data.tables.tabular_values import TabularValues
from ldl.moved import old_names

__all__ = [
    "CIFAR10H",
    "FERPlus",
    "ImageLDL",
    "ImageValues",
    "LDLDataModule",
    "LIDC",
    "Loaded",
    "MixedDigits",
    "PictureFolder",
    "PosedFaces",
    "RotatedDigits",
    "ShiftedDigits",
    "ShiftedFaces",
    "TabularLDL",
    "TabularValues",
]

__getattr__ = old_names(__name__)
