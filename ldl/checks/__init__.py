"""What is held against the contracts while a model learns and predicts."""
