"""Running a configuration: the parser of the command line, training, testing, prediction and the output of runs."""
