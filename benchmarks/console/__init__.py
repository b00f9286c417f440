"""What the command line prints and costs."""
