"""Experiments of many trainings: cross-validation, comparison, hyperparameter search, and the list of finished runs."""
