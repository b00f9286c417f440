"""The mathematics: pure functions and compiled loops on arrays, without Lightning."""
