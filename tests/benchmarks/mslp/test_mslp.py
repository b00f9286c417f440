"""MSLP's embedding and its growth, on small numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from benchmarks.mslp import embedding, scale


def test_embedding(command: Callable[..., str], small_sets: Path) -> None:
    said, *lines = command(embedding, "--set", "SJAFFE").splitlines()
    assert "is not the published table" in said
    shares = [float(line.rsplit(None, 1)[1]) for line in lines[:2]]
    assert all(0 < share < 1 for share in shares) and Path(lines[2]).stat().st_size > 10_000


def test_scale() -> None:
    seconds, memory = scale.measure(120, "linear", 1)
    assert seconds > 0 and memory >= 0
