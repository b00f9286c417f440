"""The command line: words to a configuration, help, messages, subcommands."""

from ldl.command.console import command, main

__all__ = ["command", "main"]
