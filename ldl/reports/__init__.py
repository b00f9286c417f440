"""What a run writes down: predictions, charts, edge maps."""
