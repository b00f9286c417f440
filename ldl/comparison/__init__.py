"""Candidates compared on the same folds: settings chosen inside each training part, cells on disk, a recommendation."""
