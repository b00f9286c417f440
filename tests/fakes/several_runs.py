"""Runs several command lines in one process, which pays for the imports once: ``several_runs.py FILE.json``.

No charts are drawn.
"""

import json
import sys
from pathlib import Path

import pytest

from fakes.blank_charts import leave_out_charts
from ldl.command import main
from ldl.run import main as training

if __name__ == "__main__":
    leave_out_charts(pytest.MonkeyPatch())
    training.REPORT_SECONDS = 120  # the first process may still write the charts of the run before
    for command_line in json.loads(Path(sys.argv[1]).read_text()):
        main(command_line)
