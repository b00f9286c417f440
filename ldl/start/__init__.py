"""What the command answers before anything slow is imported: help, names that do not exist, its version."""
