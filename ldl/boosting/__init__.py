"""Boosting of decision stumps on bags of instances (Babenko et al. 2008)."""
