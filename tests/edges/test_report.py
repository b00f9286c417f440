"""The report of edges: three maps of each image, and no log outside a test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from ldl.edges.benchmark.ground_truth import read_edge_map, read_probability
from ldl.edges.benchmark.thinning import suppress
from ldl.edges.report import EdgeReport
from ldl.labels import LabelSpace


def test_strengths_edges_and_disagreement_of_an_image(tmp_path: Path) -> None:
    strength = np.zeros((30, 24), np.float32)
    strength[:, 11:14] = 0.5, 1, 0.25
    report, data = EdgeReport(tmp_path, False), SimpleNamespace(names=["test/7"], smoothing=1)
    prediction = torch.from_numpy(np.stack([1 - strength, strength], -1))
    report.write(data, 0, {"prediction": prediction}, LabelSpace.nominal(["no edge", "edge"]))
    np.testing.assert_allclose(read_probability(tmp_path / "strengths/7.png")[0], strength, atol=1 / 255)
    thin = suppress(strength, smoothing=1)
    assert 0 < np.count_nonzero(thin) < np.count_nonzero(strength)
    np.testing.assert_allclose(read_edge_map(tmp_path / "edges/7.png"), thin, atol=1 / 255)
    disagreement = read_edge_map(tmp_path / "disagreement/7.png")
    np.testing.assert_allclose(disagreement[5, 11:14], [1, 0, 0.75], atol=1 / 255)


def test_maps_are_evaluated_in_a_test_only(tmp_path: Path) -> None:
    report, trainer = EdgeReport(tmp_path, False), SimpleNamespace(testing=False)
    unused: Any = None
    report.finish(trainer, unused, np.arange(1), np.zeros(1))  # type: ignore[arg-type]
    assert report.sheets(trainer, unused) == {} and not list(tmp_path.iterdir())  # type: ignore[arg-type]
