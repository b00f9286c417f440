"""The doors: ``train.py``, and the console command ``ldl``."""

from ldl.cli.training import main

__all__ = ["main"]
