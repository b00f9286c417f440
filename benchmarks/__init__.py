"""What is measured for the results pages; README.md says how."""
