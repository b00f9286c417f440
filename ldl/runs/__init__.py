"""Runs that were made: listed, filtered, compared."""
