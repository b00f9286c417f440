"""Runs several command lines in one process, which pays for the imports once: ``several_runs.py FILE.json``."""

import json
import sys
from pathlib import Path

from ldl.cli import main

if __name__ == "__main__":
    for command_line in json.loads(Path(sys.argv[1]).read_text()):
        main(command_line)
