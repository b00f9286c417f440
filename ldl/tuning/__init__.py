"""Searching for a setting: the space, the study that its workers share, and what is left of it."""
