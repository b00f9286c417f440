"""Boosting on bags and for groups (Babenko et al. 2008)."""
