"""Bags of instances: data, MIL-Boost and MPL-Boost, pooling of instances."""

from ldl.bags.bagged import Bagged
from ldl.bags.bags import Bags
from ldl.bags.each_instance import EachInstance
from ldl.bags.milboost import MILBoost, MPLBoost

__all__ = ["Bagged", "Bags", "EachInstance", "MILBoost", "MPLBoost"]
