"""MORPH II: its release, names, lists and protocols."""
