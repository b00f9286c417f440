"""Methods of benchmarks/tables can be made small, and competing packages learn distributions, where installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from benchmarks.tables.columns import Column
from benchmarks.tables.methods import LARGEST, Method, OnSet, make_head, quickened
from benchmarks.tables.networks import TabM
from ldl.spec import to_spec

TABLES = Path(__file__).resolve().parents[1] / "benchmarks" / "tables"
FEATURES, LABELS = 6, 4


def made_table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return features (N, F), and distributions (N, C) that follow from them."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(rows, FEATURES))
    scores = torch.from_numpy(features @ rng.normal(size=(FEATURES, LABELS)))
    return features, scores.softmax(1).numpy()


def divergence(target: np.ndarray, predicted: np.ndarray) -> float:
    return float((target * np.log(target / predicted)).sum(1).mean())


def test_tabm_learns_distributions() -> None:
    pytest.importorskip("tabm", reason="needs ldl[peers]")
    features, target = made_table(400)
    model = TabM(members=4, width=32, epochs=40, batch_size=32)
    model.fit(features[:300], target[:300])
    predicted = model.predict(features[300:])
    assert predicted.shape == (100, LABELS) and np.allclose(predicted.sum(1), 1, atol=1e-5)
    baseline = divergence(target[300:], target[:300].mean(0)[None])
    assert divergence(target[300:], predicted) < 0.2 * baseline


def test_tabm_repeats_by_its_seed() -> None:
    pytest.importorskip("tabm", reason="needs ldl[peers]")
    features, target = made_table(100)
    predictions = []
    for seed in (0, 0, 1):
        model = TabM(members=2, width=8, epochs=2, seed=seed)
        model.fit(features, target)
        predictions.append(model.predict(features))
    assert np.array_equal(predictions[0], predictions[1])
    assert not np.array_equal(predictions[0], predictions[2])


def methods_of(config: str) -> list[Method]:
    entries = yaml.safe_load((TABLES / f"{config}.yaml").read_text(encoding="utf-8"))["methods"]
    return [Method(name, **entry) for name, entry in entries.items()]


def sizes_in(spec: object) -> Iterator[tuple[str, int]]:
    """Yield the arguments, at any depth of a specification, whose small form is limited."""
    if isinstance(spec, list):
        yield from (size for part in spec for size in sizes_in(part))
    if isinstance(spec, dict):
        for name, value in spec.items():
            if name in LARGEST and isinstance(value, int):
                yield name, value
            yield from sizes_in(value)


@pytest.mark.parametrize("config", ["tabular", "pool", "recent"])
def test_every_method_has_a_small_form(config: str) -> None:
    for method in methods_of(config):
        small = quickened(method)
        if small.is_head:
            made = to_spec(make_head({"class_path": small.class_path, "init_args": small.init_args}))
            assert all(size <= LARGEST[name] for name, size in sizes_in(made)), method.name


def test_a_class_that_is_not_found_is_named() -> None:
    with pytest.raises(ImportError, match="class_path 'Tabula' is neither a head or backbone of ldl nor a path"):
        make_head({"class_path": "Trained", "init_args": {"backbone": {"class_path": "Tabula"}}})


def competing_methods() -> list[Method]:
    """Return the methods that are no heads of ldl and no part of scikit-learn."""
    methods = methods_of("tabular") + methods_of("recent")
    return [method for method in methods if not method.is_head and not method.class_path.startswith("sklearn.")]


@pytest.mark.slow
@pytest.mark.parametrize("method", competing_methods(), ids=lambda method: method.name)
def test_competing_methods_predict_distributions(method: Method, tmp_path: Path) -> None:
    features, target = made_table(80)
    np.savez(tmp_path / "made.npz", features=features, labels=target)
    candidate = OnSet(Column("made", str(tmp_path / "made.npz"), "shuffled", "made"), quickened(method), seed=0)
    [setting] = candidate.settings
    try:
        metrics = candidate.score(setting, candidate.open(setting, 0))
    except ImportError as error:
        pytest.skip(f"needs ldl[peers]: {error}")
    assert 0 < metrics["kl"] < 5
