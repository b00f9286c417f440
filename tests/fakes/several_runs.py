"""Runs several command lines in one process, which pays for the imports once: ``several_runs.py FILE.json``.

Charts are made, and saved as a single pixel.
"""

import json
import sys
from pathlib import Path

from matplotlib.figure import Figure

from fakes.blank_charts import save_blank
from ldl.command import main
from ldl.run import main as training

if __name__ == "__main__":
    Figure.savefig = save_blank
    training.REPORT_SECONDS = 120  # the first process may still write the charts of the run before
    for command_line in json.loads(Path(sys.argv[1]).read_text()):
        main(command_line)
