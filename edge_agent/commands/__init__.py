"""Commands: the verbs of the command line, one a file."""
