"""The machine code of the forest: kept between processes, found anew when a source changes, wherever one may write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.paths import ROOT

from ldl.methods.numba_kernels import _cache_folder

SCRIPT = """
import numpy as np
from ldl.methods.forest import sampling  # it imports no torch, which would take most of the time
sampling._pick(3, np.zeros(1, np.uint64), np.empty(2, np.int32))
stats = sampling._pick.stats
print(sampling.__file__, stats.cache_path, sum(stats.cache_hits.values()), sep="\\n")
"""


def run(package: Path, home: Path, **more: str) -> tuple[Path, Path, int]:
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    env |= {"PYTHONPATH": str(package), "HOME": str(home), **more}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=env, cwd=home, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    source, folder, hits = done.stdout.splitlines()
    assert Path(source).is_relative_to(package)
    return Path(source), Path(folder), int(hits)


def test_the_folder_is_named_by_the_sources_of_a_package(tmp_path: Path) -> None:
    folder = _cache_folder.__wrapped__  # without the memory of a process
    (tmp_path / "one.py").write_text("A = 1")
    first = folder(tmp_path)
    assert first.is_dir() and folder(tmp_path) == first
    (tmp_path / "two.py").write_text("B = 1")
    second = folder(tmp_path)
    assert second != first
    for made in (first, second):
        made.rmdir()


@pytest.mark.slow
def test_code_is_kept_until_any_source_changes_in_the_first_folder_that_can_be_written(tmp_path: Path) -> None:
    """An installed package: a copy of the sources in a folder of its own."""
    package, home = tmp_path / "site-packages", tmp_path / "home"
    home.mkdir()
    shutil.copytree(ROOT / "ldl", package / "ldl", ignore=shutil.ignore_patterns("__pycache__"))
    _, folder, hits = run(package, home)
    assert hits == 0 and folder.is_relative_to(package)
    assert run(package, home)[1:] == (folder, 1)
    assert run(package, home, NUMBA_CACHE_DIR=str(tmp_path / "mine"))[1].is_relative_to(tmp_path / "mine")
    # numba looks at the file of the function alone; this is another file of its package.
    source = package / "ldl/methods/forest/boosting.py"
    source.write_text(source.read_text() + "\n")
    _, changed, hits = run(package, home)
    assert changed != folder and hits == 0
    # A file in the folder's place: nobody can write there, not even root.
    shutil.rmtree(package / "ldl/methods/__pycache__")
    (package / "ldl/methods/__pycache__").write_text("")
    _, folder, _ = run(package, home, PYTHONDONTWRITEBYTECODE="1")
    assert folder.is_relative_to(home / ".cache/ldl")
