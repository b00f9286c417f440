"""Bags of instances from a table."""
