"""How far a reader travels from ``train.py`` to the end of the first training step, traced in a process of its own.

    python benchmarks/house.py --list                            # with the other measures of the house
    python benchmarks/house_journey.py CHECKOUT JOURNEY.json     # the trace alone, which that command starts

A function counts if it is one of ``ldl/`` with a name, neither lambda nor comprehension, and is called before the first
``training_step`` has ended. What runs while a module is imported, and what jsonargparse calls, does not count.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

PACKAGE = "ldl"
TOKENIZERS = {"tokenize"}
"""Functions that split a command line into options."""
BUILDERS = {"Task.__init__"}
"""Functions that build the task of a run."""
FIRST_STEP = "Task.training_step"
RUN = ("--wandb.mode=disabled", "--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu")
"""The default run, but for what it shows."""


class Journey(NamedTuple):
    """What happens before the first training step of the default run has ended.

    Attributes:
        functions: Functions that were called, as ``file:name``.
        tokenised: How often the command line was split into options.
        built: How often a task was built.
    """

    functions: list[str]
    tokenised: int
    built: int

    @property
    def files(self) -> set[str]:
        """Files of the functions."""
        return {function.partition(":")[0] for function in self.functions}


def follow_run(root: Path) -> Journey:
    """Trace the default run of a checkout in a process of its own, up to the end of its first training step."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "journey.json")
        environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
        environment |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, str(Path(__file__).resolve()), str(root), str(written)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if not written.is_file():
            raise RuntimeError(f"the run ended before {FIRST_STEP}, the name of the step: {done.stderr[-500:]}")
        journey = Journey(**json.loads(written.read_text(encoding="utf-8")))
    if not journey.tokenised or not journey.built:
        raise RuntimeError(f"no function {TOKENIZERS} or {BUILDERS} was called; name those that do it now")
    return journey


def trace_run(root: Path, written: Path) -> None:
    """Run ``train.py`` in this process, write its journey as JSON, and end the process."""
    package = f"{root}{os.sep}{PACKAGE}{os.sep}"
    calls: Counter[str] = Counter()
    every: Counter[str] = Counter()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if event not in ("call", "return") or not file.startswith(package):
            return
        if event == "return":
            if name == FIRST_STEP:
                sys.setprofile(None)
                tokenised = sum(every[function] for function in TOKENIZERS)
                content = Journey(sorted(calls), tokenised, sum(every[function] for function in BUILDERS))
                written.write_text(json.dumps(content._asdict()), encoding="utf-8")
                os._exit(0)
            return
        every[name] += 1
        if not name.rpartition(".")[2].startswith("<") and not is_foreign(frame, package):
            calls[f"{PACKAGE}/{file.removeprefix(package)}:{name}"] += 1

    sys.argv = [str(root / "train.py"), *RUN, "--run_dir", str(written.with_name("run"))]
    sys.path[0] = str(root)
    sys.setprofile(watch)
    runpy.run_path(sys.argv[0], run_name="__main__")


def is_foreign(frame: FrameType, package: str) -> bool:
    """Return whether a call comes from the import of a module of the package, or from jsonargparse."""
    caller = frame.f_back
    while caller is not None:
        file = caller.f_code.co_filename
        if "jsonargparse" in file or (caller.f_code.co_name == "<module>" and file.startswith(package)):
            return True
        caller = caller.f_back
    return False


if __name__ == "__main__":
    trace_run(Path(sys.argv[1]), Path(sys.argv[2]))
