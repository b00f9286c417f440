"""Exported models."""
