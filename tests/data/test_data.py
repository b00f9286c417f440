"""TabularLDL and RotatedDigits: what they serve, and what they learn from the training part alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch
from scipy import ndimage
from scipy.special import rel_entr
from sklearn.datasets import load_digits
from sklearn.model_selection import KFold
from torch import Tensor

from ldl.collective import Collective
from ldl.data import LDLDataModule, RotatedDigits, TabularLDL
from ldl.data.sampler import Draw
from ldl.errors import LDLError
from ldl.heads import MeanPredictor
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl

RNG = np.random.default_rng(0)
X = RNG.normal(3, [1, 10, 0.1, 5], (60, 4))
D = RNG.dirichlet(np.ones(3), 60)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.npz"
    np.savez(path, features=X, labels=D)
    return path


def made(path: Path, **options: Any) -> TabularLDL:
    data = TabularLDL(str(path), **options)
    data.setup()
    return data


def inputs(data: LDLDataModule, rows: Any) -> Tensor:
    rows = np.asarray(rows)
    return data.inputs(rows, np.zeros(len(rows), int), train=False)


def test_features_are_standardised_by_the_training_rows_alone(table: Path) -> None:
    data = made(table, fold=3)
    train = X[data.split.train]
    assert 0 < len(data.split.val) < len(data.split.test) * 2
    for rows in (data.split.train, data.split.val, data.split.test):
        expected = (X[rows] - train.mean(0)) / train.std(0)
        np.testing.assert_allclose(inputs(data, rows).numpy(), expected, rtol=1e-5, atol=1e-5)
    changed = X.copy()
    changed[data.split.test] += 1000
    changed[data.split.val] -= 500
    np.savez(table, features=changed, labels=D)
    again = made(table, fold=3)
    assert torch.equal(inputs(again, data.split.train), inputs(data, data.split.train))


def test_a_fold_that_is_set_later_is_cut(table: Path) -> None:
    data, wanted = made(table), made(table, fold=3)
    data.fold = 3
    data.setup("fit")
    np.testing.assert_array_equal(data.split.test, wanted.split.test)
    assert torch.equal(inputs(data, range(60)), inputs(wanted, range(60)))
    data.fold = 10
    with pytest.raises(LDLError, match=r"fold 10 must be in 0..9"):
        data.setup("fit")


@pytest.mark.parametrize("constant", [0.1, 1e6])
def test_constant_features_become_zero(table: Path, constant: float) -> None:
    features = X.copy()
    features[:, 2] = constant
    np.savez(table, features=features, labels=D)
    data = made(table)
    np.testing.assert_allclose(inputs(data, range(60))[:, 2].numpy(), 0, atol=1e-6)
    assert bool(inputs(data, range(60)).isfinite().all())


@pytest.mark.parametrize("scaling", ["standard", "ranks", "quantile_normal", "quantile_uniform", "none"])
def test_a_checkpoint_s_scaling_is_taken_over(table: Path, scaling: str) -> None:
    first, second = made(table, fold=0, scaling=scaling), made(table, fold=1, scaling=scaling)
    expected = inputs(first, range(60)).clone()
    assert torch.equal(inputs(second, range(60)), expected) == (scaling == "none")
    second.load_state_dict(first.state_dict())
    assert torch.equal(inputs(second, range(60)), expected)
    np.savez(table, features=X[:, :3], labels=D)
    if scaling != "none":
        with pytest.raises(LDLError, match="3 features, but .* trained on 4; give the data"):
            made(table, scaling=scaling).load_state_dict(first.state_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"label_names": ["a", "b"]}, "label_names has 2 entries, but the file has 3 labels"),
        ({"label_values": [1, 2, 3, 4]}, "label_values has 4 entries"),
        ({"label_values": [1, 3, 2]}, "rise strictly"),
        ({"fold": 10}, r"fold 10 must be in 0..9"),
    ],
)
def test_wrong_options_are_refused(table: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message) as caught:
        made(table, **options)
    assert "\n" not in str(caught.value)


def test_labels_get_names_or_values(table: Path) -> None:
    assert made(table).labels.names == ("0", "1", "2")
    assert made(table, label_names=["x", "y", "z"]).labels.names == ("x", "y", "z")
    assert made(table, label_names=np.array([3, 2, 1])).labels.names == ("3", "2", "1")
    ordinal = made(table, label_values=[1, 2, 4], label_unit="stars").labels
    assert (ordinal.kind, ordinal.axes, ordinal.unit) == ("ordinal", ((1.0, 2.0, 4.0),), "stars")


def test_loaders_serve_every_row_of_their_part_once(table: Path) -> None:
    data = made(table, batch_size=7)
    for loader, rows in (
        (data.train_dataloader(), data.split.train),
        (data.fit_dataloader(), data.split.train),
        (data.val_dataloader(), data.split.val),
        (data.test_dataloader(), data.split.test),
    ):
        batches = list(loader)
        assert all(len(batch["index"]) == 7 for batch in batches[:-1])
        columns = {name: torch.cat([batch[name] for batch in batches]) for name in batches[0]}
        assert set(columns) == {"input", "target", "weight", "index"}
        order = columns["index"].argsort()
        assert columns["index"][order].tolist() == rows.tolist()
        np.testing.assert_allclose(columns["target"][order].numpy(), D[rows], rtol=1e-5)
        assert torch.equal(columns["input"][order], inputs(data, rows))
        assert bool((columns["weight"] == 1).all())
    assert next(iter(data.fit_dataloader()))["index"].tolist() == data.split.train[:7].tolist()
    assert made(table, val_fraction=0).val_dataloader() == []


def test_ten_folds_of_sjaffe_score_as_with_public_packages(ldl_data: Path) -> None:
    raw = scipy.io.loadmat(ldl_data / "ldl" / "SJAFFE.mat")["labels"]
    folds = KFold(10, shuffle=True, random_state=0).split(raw)
    expected = [rel_entr(raw[test], raw[train].mean(0)).sum(1).mean() for train, test in folds]
    assert np.mean(expected) == pytest.approx(0.0732, abs=5e-5)
    for fold in range(10):
        data = TabularLDL("ldl/SJAFFE.mat", root=str(ldl_data), fold=fold, val_fraction=0, protocol="shuffled")
        data.setup()
        head = MeanPredictor()
        head.build(243, data.labels)
        head.fit(Rows(data.scaled[data.split.train], data.columns["target"][data.split.train]), Collective())
        test = data.split.test
        measured = kl(head(data.scaled[test]), data.columns["target"][test]).mean().item()
        assert measured == pytest.approx(expected[fold], rel=1e-4)


@pytest.fixture(scope="module")
def digits() -> RotatedDigits:
    data = RotatedDigits(turns=2)
    data.setup()
    return data


def test_digits_are_turned_by_the_angle_they_are_labelled_with(digits: RotatedDigits) -> None:
    assert (digits.size, digits.input_shape, len(digits.labels)) == (2 * 1797, (1, 12, 12), 49)
    instances = digits.dataset(np.arange(digits.size), train=True)
    originals = load_digits().images
    for row in (0, 1, 501, 3593):
        item = instances[Draw(row, 1.0, 0)]
        padded = np.pad(originals[row // 2] / 16, 2)
        turned = ndimage.rotate(padded, item["value"].item(), reshape=False, order=1)
        np.testing.assert_allclose(item["input"][0].numpy(), turned, atol=1e-4)
        assert item["group"].item() == row // 2
        assert abs(digits.labels.decode(item["target"]).item() - item["value"].item()) < 8
    assert float(digits.images.min()) >= 0 and float(digits.images.max()) <= 1 + 1e-6
    assert bool((np.abs(digits.values) <= 120).all()) and digits.values.std() > 60


def test_turns_of_one_digit_stay_in_one_part(digits: RotatedDigits) -> None:
    parts = [set((rows // 2).tolist()) for rows in (digits.split.train, digits.split.val, digits.split.test)]
    assert not (parts[0] & parts[1] or parts[0] & parts[2] or parts[1] & parts[2])
    assert sum(map(len, parts)) == 1797
    assert digits.leak == 0
