"""The processors of a process are those that it may use."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from ldl.cells.processors import processors
from ldl.edges.benchmark.evaluation import evaluate
from ldl.edges.benchmark.ground_truth import GroundTruth

pytestmark = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux says which")


def test_a_bound_process_has_as_many_as_it_is_bound_to() -> None:
    before, drawn, at_once = os.sched_getaffinity(0), np.eye(20, dtype=bool), set()

    def load(name: str) -> tuple[np.ndarray, GroundTruth]:
        at_once.add(threading.get_ident())
        return drawn.astype(float), GroundTruth(drawn[None], None)

    try:
        os.sched_setaffinity(0, {min(before)})
        assert processors() == 1
        evaluate([str(number) for number in range(20)], load)
        assert len(at_once) == 1
    finally:
        os.sched_setaffinity(0, before)
