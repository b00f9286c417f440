"""Growing and applying trees: hard, oblique and soft."""
