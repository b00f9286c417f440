"""Search over runs: comparison, tuning, statistics, lists of runs."""
