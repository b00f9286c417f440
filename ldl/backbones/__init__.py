"""The backbones of ldl."""

from ldl.backbones.base import Backbone, Identity
from ldl.backbones.haar import Haar
from ldl.backbones.hog import HOG
from ldl.backbones.tabular import Tabular
from ldl.backbones.timm import Timm
from ldl.moved import old_names

__all__ = ["HOG", "Haar", "Backbone", "Identity", "Tabular", "Timm"]

__getattr__ = old_names(__name__)
