"""Running a configuration: the parser of the command line, training, testing, prediction and what runs write."""
