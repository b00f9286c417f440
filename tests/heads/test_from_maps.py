"""Forests and boosted trees on a table in maps of files: equal bits, whatever lies on disk, whoever shares the work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.trees import problem

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.heads import BoostedTrees, StructRF
from ldl.labels import LabelSpace
from ldl.methods import training_rows as mapped
from ldl.methods.forest import binning
from ldl.methods.forest.binning import make_columns
from ldl.methods.rows import Rows

HEADS = {
    "watched": (BoostedTrees, {"rounds": 6, "patience": 3, "learning_rate": 0.3, "depth": 4, "min_leaf": 2}),
    "label": (BoostedTrees, {"rounds": 3, "patience": None, "trees": "label", "min_leaf": 2}),
    "histogram": (StructRF, {"trees": 4, "search": "histogram", "depth": 6}),
}


@pytest.mark.parametrize("name", HEADS)
def test_a_map_gives_the_bits_of_memory(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, arguments = HEADS[name]

    def fitted(features: torch.Tensor, target: torch.Tensor, threads: int) -> FittedHead:
        head = kind(**arguments, threads=threads, seed=1)  # type: ignore[arg-type]
        head.build(features.shape[1], LabelSpace.nominal([str(c) for c in range(target.shape[1])]))
        head.fit(Rows(features, target), Collective())
        return head

    features, target = problem(rows=2003, missing=0.1 if kind is BoostedTrees else 0.0)
    here = fitted(features, target, 1).state_dict()
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    for part, tensor in (("features", features), ("target", target)):
        np.save(tmp_path / f"{part}.npy", tensor.numpy())
    maps = [torch.from_numpy(np.load(tmp_path / f"{part}.npy", mmap_mode="c")) for part in ("features", "target")]
    for module, constant in ((mapped, "READ_BYTES"), (mapped, "SCRATCH_FILE_BYTES"), (binning, "COLUMN_BYTES")):
        monkeypatch.setattr(module, constant, 10_000)
    monkeypatch.setattr("ldl.heads.structrf.OUT_OF_BAG_ROWS", 304)
    for constant in (
        "boosted_tree.ADDITIONS_WORTH_THREADS",
        "boosting.DERIVATIVES_WORTH_THREADS",
        "predict.WORTH_A_THREAD",
    ):
        monkeypatch.setattr(f"ldl.methods.forest.{constant}", 1)
    for threads in (1, 2):
        there = fitted(maps[0], maps[1], threads).state_dict()
        assert all(torch.equal(tensor, there[name]) or bool(tensor.isnan().all()) for name, tensor in here.items())
    assert len(here["roots"]) > 3 and not any((tmp_path / "cache/scratch").iterdir())


def test_more_rows_than_trees_can_number_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binning, "MOST_ROWS", 99)
    rows = np.arange(120, dtype=np.float32).reshape(60, 2)
    assert len(make_columns(rows[:49], "ordered").rows) == 98
    with pytest.raises(LDLError, match=r"trees number rows, .* by 32 bits, and 120 are more than 99; take fewer rows"):
        make_columns(rows, "ordered")
    assert make_columns(rows, "binned").codes.shape == (2, 60)
    with pytest.raises(LDLError, match="and 100 are more than 99"):
        make_columns(np.zeros((100, 1), np.float32), "binned")
