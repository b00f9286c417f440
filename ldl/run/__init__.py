"""A run: data, task and trainer of a configuration, its folder, results and loggers."""
