"""Boosting of decision stumps from bags (Babenko et al. 2008)."""
