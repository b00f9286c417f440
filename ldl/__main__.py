"""``python -m ldl`` is the console command ``ldl``."""

from ldl.cli.command import command

if __name__ == "__main__":
    command()
