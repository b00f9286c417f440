"""Validation: checks of checkpoints, loaded tensors, losses, predictions and heads, each at one border."""
