"""Data sets, models, executors and processes that tests share."""
