"""The run directory of a run that may yet be refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ldl.collective import process_rank
from ldl.errors import LDLError
from ldl.progress import Stopped

RESULTS = {"results.json", "predictions.csv"}
WRITTEN = RESULTS | {
    *("config.yaml", "metrics.csv", "model_card.md", "evaluation.json", "votes.json"),
    *("charts", "checkpoints", "wandb", "maps", "edges", "strengths", "disagreement"),
}
"""Names of what a run writes into its directory, besides its folds."""
FOLDS = "fold_*"


def check_no_run(folder: Path, what: str) -> None:
    """Raise LDLError where a run has left its own in a folder that ``what``, such as a search, is to have."""
    if there := next((name for name in [*RESULTS, "checkpoints", "fold_0"] if (folder / name).exists()), None):
        raise LDLError(f"--run_dir {folder} has {there} of a run; give {what} another folder")


@contextmanager
def nothing_left(folder: Path) -> Iterator[None]:
    """Where the block ends in LDLError, or was told to end, before there are checkpoints or results, remove its files.

    What was in the folder before stays as it was, and so does what others make there, such as a run in a folder below.
    """
    there = _content(folder)
    missing = [place for place in (folder, *folder.parents) if not os.path.exists(place)]
    config = folder / "config.yaml"
    before = config.read_bytes() if config in there else None
    try:
        yield
    except (LDLError, Stopped):
        made = _content(folder) - there
        if process_rank() == 0 and not any(path.suffix == ".ckpt" or path.name in RESULTS for path in made):
            for path in [*sorted(made, reverse=True), *missing]:
                with suppress(OSError):
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            if before is not None:
                config.write_bytes(before)
        raise


def _content(folder: Path) -> set[Path]:
    """What lies there under the names that runs write."""
    if not os.path.isdir(folder):
        return set()
    own = {path for path in (*folder.glob(FOLDS), *map(folder.joinpath, WRITTEN)) if os.path.lexists(path)}
    return own.union(*(path.rglob("*") for path in own if not path.is_symlink()))
