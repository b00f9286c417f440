"""Boosting of bags: MILBoost and MPLBoost (Babenko et al. 2008)."""
