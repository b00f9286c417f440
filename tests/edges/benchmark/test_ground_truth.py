"""Ground truth and edge maps: files of every form are read, unusable ones are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from fakes import edge_images
from scipy.sparse import csc_matrix

from ldl.edges.benchmark.ground_truth import (
    read_ground_truth,
    read_probability,
    write_edge_map,
)
from ldl.errors import LDLError


def _cells(*cells: dict[str, Any]) -> dict[str, Any]:
    """Return the variable of a ground truth file with these annotators."""
    variable = np.empty((1, len(cells)), object)
    variable[0, :] = cells
    return {"groundTruth": variable}


def _maps(*maps: Any) -> dict[str, Any]:
    return _cells(*({"Boundaries": drawn} for drawn in maps))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_maps(), "holds no annotators"),
        (_maps(np.ones((4, 5)), np.ones((5, 4))), "annotators 0 and 1 differ in size, 4x5 and 5x4"),
        (_maps(*[csc_matrix((2**16, 2**10))] * 5), "sparse matrices of 335544320 pixels in all, 268435456 at most"),
        ({"x": 1}, "no variable groundTruth"),
        (_cells({"Segmentation": np.ones((3, 3))}), "annotator 0 has no Boundaries, but Segmentation"),
        (b"MATLAB 5.0 MAT-file, but not really" * 9, "cannot be read"),
        (None, "no ground truth at"),
    ],
)
def test_unusable_ground_truth_is_named(tmp_path: Path, content: Any, message: str) -> None:
    path = tmp_path / "a.mat"
    if isinstance(content, dict):
        scipy.io.savemat(path, content)
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(LDLError, match=message):
        read_ground_truth(path)


def test_sparse_maps_become_dense(tmp_path: Path) -> None:
    drawn = np.stack([np.eye(4, 5), np.zeros((4, 5))])
    scipy.io.savemat(tmp_path / "a.mat", _maps(*map(csc_matrix, drawn)))
    assert np.array_equal(read_ground_truth(tmp_path / "a.mat").boundaries, drawn > 0)


def test_maps_of_both_depths_are_read(tmp_path: Path) -> None:
    strength = np.array([[0, 1 / 255], [0.4, 1]])
    edge_images.write_probability(tmp_path / "deep.png", strength)
    write_edge_map(tmp_path / "flat.png", strength)
    for name, steps in (("deep", 65535), ("flat", 255)):
        probability, greatest = read_probability(tmp_path / f"{name}.png")
        assert greatest == steps
        np.testing.assert_allclose(probability, strength, atol=1e-12)
    with pytest.raises(LDLError, match="bad.png: the values of a map must be in 0..1, these reach from 0 to 1.5"):
        write_edge_map(tmp_path / "bad.png", 1.5 * strength)
    with pytest.raises(LDLError, match="these reach from nan to nan"):
        write_edge_map(tmp_path / "bad.png", np.nan * strength)
