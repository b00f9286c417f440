"""Files that a run writes: predictions, charts, maps and the model card."""
