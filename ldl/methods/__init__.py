"""Methods: pure functions and compiled loops on arrays and tensors, without Lightning."""
