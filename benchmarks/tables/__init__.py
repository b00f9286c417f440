"""Heads and peers on tables of label distributions, on the same folds."""
