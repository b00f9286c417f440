"""What the scripts share: the command line, folds, figures, tables, times, and what was measured already."""
