"""``python -m ldl`` is the console command ``ldl``."""

from ldl.command.console import command

if __name__ == "__main__":
    command()
