"""BoostedTrees on a table in a map of a file: equal bits, whatever lies on disk, and whoever shares the work."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from some_trees import problem

from ldl.collective import Collective
from ldl.heads import BoostedTrees
from ldl.labels import LabelSpace
from ldl.methods import mapped
from ldl.methods.forest import binning, boosting


@pytest.mark.parametrize("arguments", [{"patience": 3}, {"patience": None, "trees": "label"}], ids=["watched", "label"])
def test_a_map_gives_the_bits_of_memory(
    arguments: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fitted(features: torch.Tensor, target: torch.Tensor, threads: int) -> BoostedTrees:
        head = BoostedTrees(rounds=12, learning_rate=0.3, depth=6, min_leaf=2, threads=threads, seed=1, **arguments)  # type: ignore[arg-type]
        head.build(features.shape[1], LabelSpace.nominal([str(c) for c in range(target.shape[1])]))
        head.fit(features, target, Collective())
        return head

    features, target = problem(rows=2000, missing=0.1)
    here = fitted(features, target, 1).state_dict()
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    for name, tensor in (("features", features), ("target", target)):
        np.save(tmp_path / f"{name}.npy", tensor.numpy())
    maps = [torch.from_numpy(np.load(tmp_path / f"{name}.npy", mmap_mode="c")) for name in ("features", "target")]
    for module, name in ((mapped, "BLOCK"), (mapped, "LARGE"), (boosting, "LARGE"), (binning, "COLUMNS")):
        monkeypatch.setattr(module, name, 10_000)
    for place in ("boosted_tree", "boosting"):
        monkeypatch.setattr(f"ldl.methods.forest.{place}.WORTH_THREADS", 0)
    for threads in (1, 2):
        there = fitted(*maps, threads).state_dict()
        assert all(torch.equal(tensor, there[name]) or tensor.isnan().all() for name, tensor in here.items())
    assert len(here["roots"]) > 3 and not any((tmp_path / "cache").iterdir())
