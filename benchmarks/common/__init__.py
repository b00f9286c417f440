"""What the scripts share: items of papers and their pages, data sets and folds, the command line, and times."""
