"""Data modules, one data set a file."""

from ldl.data.base import LDLDataModule
from ldl.data.rotated_digits import RotatedDigits
from ldl.data.tabular import TabularLDL

__all__ = ["LDLDataModule", "RotatedDigits", "TabularLDL"]
