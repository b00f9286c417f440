"""The command line: ``train.py`` and the console command ``ldl``."""

from ldl.cli.command import main

__all__ = ["main"]
