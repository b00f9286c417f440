"""Jobs: runs distributed over processes, and cross-validation as jobs over folds."""
