"""Behind the command line: parser, runs, cross-validation, results, loggers."""
