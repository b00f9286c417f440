"""What loading and heads cost."""
