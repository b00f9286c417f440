"""The backbones of ldl."""

from ldl.backbones.base import Backbone, Identity
from ldl.backbones.each_instance import EachInstance
from ldl.backbones.haar import Haar
from ldl.backbones.hog import HOG
from ldl.backbones.pixel_features import PixelFeatures
from ldl.backbones.timm import Timm

__all__ = ["EachInstance", "HOG", "Haar", "Backbone", "Identity", "PixelFeatures", "Timm"]
