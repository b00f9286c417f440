"""What all tests share."""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Before numpy, which reads them once: matrices here are small, and two test files at a time share the cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# isort: split
import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import pytest
import torch
from fakes.blank_charts import leave_out_charts, save_blank
from matplotlib.backends.backend_agg import FigureCanvasAgg

torch.set_num_threads(1)

# Runs leave ignored what was ignored before them, as by nohup or in the background of a script; tests send it to them.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)

FORKS = ("fakes.forks",)
"""What forks the process of a test."""

STARTS_PROCESSES = {"subprocess", "launch"}
"""Names, one of which a file has that starts processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take longest come first, else one of them goes on alone at the end: processes, then slow tests.

    Before all others come those that fork, which torch refuses once it has recorded a graph for export.
    """
    if not torch.cuda.is_available():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device here"))
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: _place(vars(item.getparent(pytest.Module).obj), item.path in slow))


def pytest_collection_finish() -> None:
    """Keep what was imported out of full garbage collections, which would visit it again and again."""
    gc.freeze()


def _place(names: dict[str, Any], slow: bool) -> int:
    if any(getattr(value, "__module__", None) in FORKS for value in names.values()):
        return 0
    if STARTS_PROCESSES & names.keys():
        return 1
    return 2 if slow else 3


@pytest.fixture(autouse=True)
def no_seed_left() -> Iterator[None]:
    """The seed of a run in this process, which Lightning keeps in the environment, is not the next test's."""
    yield
    os.environ.pop("PL_GLOBAL_SEED", None)


@pytest.fixture(autouse=True)
def no_format_left() -> Iterator[None]:
    """How a command line in this process shows warnings is not how the next test does."""
    before = warnings.formatwarning
    yield
    warnings.formatwarning = before


@pytest.fixture(scope="session")
def ldl_data() -> Path:
    """Folder of the real data sets; skips the test where there is none."""
    folder = os.environ.get("LDL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LDL_DATA names no folder with the real data sets")
    return Path(folder)


@pytest.fixture(scope="module")
def blank_charts() -> Iterator[None]:
    """No chart of a run is drawn from here on, in this file and what its tests fork."""
    with pytest.MonkeyPatch.context() as patched:
        leave_out_charts(patched)
        yield


@pytest.fixture
def blank(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for one test."""
    leave_out_charts(monkeypatch)


@pytest.fixture
def pixel_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are made, but not rendered: they are saved as a single pixel."""
    monkeypatch.setattr(FigureCanvasAgg, "print_png", save_blank)


@pytest.fixture
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calibration by groups draws a sixth of the scores, for tests that repeat it hundreds of times.

    The mean coverage is then determined to 0.2 points in place of 0.1, less than the errors that these tests allow.
    """
    monkeypatch.setattr("ldl.methods.conformal.units.DRAWN_SCORES", 50_000)


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """An empty cache of crops and features, for the tests of one file."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("LDL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
