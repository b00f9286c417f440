"""How the command line behaves."""
