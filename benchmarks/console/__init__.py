"""What runs print and cost."""
