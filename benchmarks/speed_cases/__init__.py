"""What ``benchmarks/speed.py`` times: cases by name, and the made-up tables that they share.

Modules that an older checkout of ldl may lack are imported by the case that needs them, so that the other cases can be
compared with that checkout.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.labels import LabelSpace

Works = dict[str, Callable[[], object]]
"""What a case times, by name; the first is ldl's."""

CASES: dict[str, Callable[[], Works]] = {}
OURS = "ldl"


def case(function: Callable[[], Works]) -> Callable[[], Works]:
    """Register a case under the name of its function."""
    CASES[function.__name__] = function
    return function


@cache
def scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that exists until the process ends."""
    return tempfile.TemporaryDirectory()


def table(rows: int, features: int, labels: int) -> tuple[Tensor, Tensor]:
    """Draw features (N, F) and distributions (N, C) that follow from them with noise, float32."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(rows, features)).astype(np.float32)
    bends = np.tanh(2 * inputs) + inputs * np.roll(inputs, 1, axis=1)
    scores = bends @ rng.normal(size=(features, labels)) * (1.5 / features**0.5) + 0.3 * rng.normal(size=(rows, labels))
    return torch.from_numpy(inputs), torch.from_numpy(scores).softmax(1).float()


def fitted(head: Any, features: Tensor, target: Tensor, values: Tensor | None = None, threads: int = 2) -> Any:
    """Build and fit a head, on ``threads`` threads if it has an option for them."""
    from benchmarks.common.data import numbered
    from ldl.methods.rows import Rows

    if hasattr(head, "threads"):
        head.threads = threads
    labels = LabelSpace.ordinal(range(target.shape[1])) if values is not None else numbered(target.shape[1])
    head.build(features.shape[-1], labels)
    head.fit(Rows(features, target, values), Collective())
    return head
