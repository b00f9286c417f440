"""Whether intervals and sets hold what they say."""
