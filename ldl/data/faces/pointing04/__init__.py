"""Pointing'04: names, boxes and protocols."""
