"""Trees: growing, prediction, oblique and soft trees, and boosting."""
