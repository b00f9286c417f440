"""The scaling of features in a checkpoint: it comes back as it was, old ones are found, changed ones refused."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch

from ldl.backbones.base import Identity
from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.heads import MaxEnt, MeanPredictor, Softmax
from ldl.inference import Predictor
from ldl.task import Task

RNG = np.random.default_rng(0)
X, D = RNG.exponential(size=(20, 3)) * 100, RNG.dirichlet(np.ones(4), 20)


def quiet_trainer(epochs: int) -> pl.Trainer:
    return pl.Trainer(
        max_epochs=epochs, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, use_distributed_sampler=False,
    )  # fmt: skip


def save(folder: Path, scaling: str, name: str = "a.ckpt") -> Path:
    """A checkpoint of a table, as a trainer writes it."""
    np.savez(folder / "t.npz", features=X, labels=D)
    data = TabularLDL(str(folder / "t.npz"), scaling=scaling, clip=3.0)  # type: ignore[arg-type]
    torch.manual_seed(0)
    task = Task(Softmax(), Identity())
    trainer = quiet_trainer(1)
    trainer.fit(task, datamodule=data)
    trainer.save_checkpoint(folder / name)
    return folder / name


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    kinds = ("standard", "quantile_normal", "none")
    return {kind: save(tmp_path_factory.mktemp(kind), kind) for kind in kinds}


def changed(file: Path, out: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    checkpoint = torch.load(file, weights_only=True)
    change(checkpoint)
    torch.save(checkpoint, out / "changed.ckpt")
    return out / "changed.ckpt"


@pytest.mark.parametrize("kind", ["standard", "quantile_normal"])
def test_old_checkpoints_have_it_with_their_data(files: dict[str, Path], kind: str, tmp_path: Path) -> None:
    wanted = Predictor.from_checkpoint(files[kind])(X).distribution
    old = changed(files[kind], tmp_path, lambda checkpoint: checkpoint["ldl"].update(preprocessing=None))
    np.testing.assert_array_equal(Predictor.from_checkpoint(old)(X).distribution, wanted)
    scaled = Predictor.from_checkpoint(files[kind]).task(torch.from_numpy(X).float()).detach().numpy()
    assert np.abs(scaled - wanted).max() > 0.01


def test_training_that_goes_on_keeps_the_scaling(files: dict[str, Path], tmp_path: Path) -> None:
    """Weights are of the rows that the checkpoint's scaling made, also where the table is another by now."""
    np.savez(tmp_path / "t.npz", features=X * 7, labels=D)
    data, task = TabularLDL(str(tmp_path / "t.npz"), clip=3.0), Task(Softmax(), Identity())
    trainer = quiet_trainer(2)
    trainer.fit(task, datamodule=data, ckpt_path=files["standard"], weights_only=True)
    assert task.preprocessing is not None
    before = torch.load(files["standard"], weights_only=True)["ldl"]["preprocessing"]["scaling"]
    torch.testing.assert_close(task.preprocessing["scaling"]["mean"], before["mean"])


class Fixed(Identity):
    """Rows as they are, as features that are computed once."""

    is_frozen = True


@pytest.mark.parametrize("backbone", [Identity(), Fixed()], ids=["computed", "kept"])
def test_another_table_is_scaled_as_in_training(backbone: Identity, tmp_path: Path) -> None:
    """Till a model is trained on it: that has a scaling of its own."""
    for name, features in (("a", X), ("b", X * 7)):
        np.savez(tmp_path / f"{name}.npz", features=features, labels=D)
    first, other = (TabularLDL(str(tmp_path / f"{name}.npz")) for name in "ab")
    task, trainer = Task(MaxEnt(), copy.deepcopy(backbone)), quiet_trainer(1)
    trainer.fit(Task(MeanPredictor(), copy.deepcopy(backbone)), datamodule=other)
    trainer.fit(task, datamodule=first)
    (rows,) = trainer.predict(task, datamodule=other)
    wanted = Predictor(task)(X * 7).distribution[other.split.test]
    np.testing.assert_allclose(rows["prediction"], wanted, atol=1e-6)
    after = Task(MeanPredictor(), copy.deepcopy(backbone))
    quiet_trainer(1).fit(after, datamodule=other)
    assert after.preprocessing is not None
    mean = after.preprocessing["scaling"]["mean"].numpy()
    np.testing.assert_allclose(mean, 7 * X[other.split.train].mean(0))
    served = other.scaled if other.backbone_features is None else other.backbone_features
    np.testing.assert_allclose(served[torch.from_numpy(other.split.train)].numpy().mean(0), 0, atol=1e-6)


def scaling(**entries: Any) -> Callable[[dict[str, Any]], object]:
    return lambda checkpoint: checkpoint["ldl"]["preprocessing"]["scaling"].update(entries)


THREE = torch.ones(3, dtype=torch.float64)
CASES: list[tuple[str, str, Callable[[dict[str, Any]], object], str]] = [
    ("no kind", "standard", scaling(kind="minmax"), "is no scaling of features, of a kind none, standard"),
    ("a clip of 0", "standard", scaling(clip=0.0), "scaling.clip is 0.0, not a number above 0"),
    ("an entry too many", "none", scaling(mean=THREE), "lacks an entry, or has an unknown one: mean"),
    ("other features", "standard", scaling(mean=THREE[:2]), r"mean has shape \(2,\), and there are 3 features"),
    ("integers", "standard", scaling(mean=torch.ones(3).long()), "mean is no tensor of float64 numbers"),
    ("NaN", "standard", scaling(mean=THREE * torch.nan), "mean is no scaling; use another checkpoint"),
    ("a deviation of 0", "standard", scaling(scale=THREE * 0), "scale is no scaling; use another checkpoint"),
    ("quantiles that fall", "quantile_normal", scaling(quantiles=-THREE.cumsum(0)[:, None].expand(3, 3)),
     "quantiles is no scaling"),
    ("quantiles without end", "quantile_normal", scaling(
        quantiles=torch.ones(1, 3, dtype=torch.float64).expand(2**27, 3), references=THREE[:1].expand(2**27),
    ), "its tensors claim"),
    ("knots alone", "standard", scaling(knots=THREE[:, None]), "lacks an entry, or has an unknown one: knots"),
    ("knots that fall", "standard", scaling(columns=THREE[:1], knots=-THREE.cumsum(0)[:, None], offsets=THREE[:, None]),
     "knots is no scaling"),
    ("offsets of no feature", "standard", scaling(columns=3 * THREE[:1], knots=THREE[:, None], offsets=THREE[:, None]),
     "columns is no scaling"),
    ("features named by numbers", "standard", lambda c: c["ldl"]["preprocessing"].update(features=[1, 2, 3]),
     "preprocessing.features is not a list of 3 distinct names"),
    ("a name twice", "standard", lambda c: c["ldl"]["preprocessing"].update(features=["a", "b", "a"]), "not a list of"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "change", "words"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_a_changed_scaling_is_no_scaling(
    files: dict[str, Path], kind: str, change: Callable[[dict[str, Any]], object], words: str, tmp_path: Path
) -> None:
    file = changed(files[kind], tmp_path, change)
    with pytest.raises(LDLError, match=f"{re.escape(str(file))} is no checkpoint of ldl: .*{words}") as refused:
        Predictor.from_checkpoint(file)
    assert "\n" not in str(refused.value)


def named(folder: Path, columns: str, **options: Any) -> TabularLDL:
    """The table, with columns in some order: of those called a, b and c, and of others."""
    frame = pd.DataFrame(dict(zip("abc", X.T)) | {"more": X[:, 0]} | {f"label:{n}": d for n, d in enumerate(D.T)})
    frame = frame[[*columns.split(), *(f"label:{number}" for number in range(4))]]
    path = folder / f"{columns}.parquet"
    frame.to_parquet(path)
    return TabularLDL(path=str(path), cache_dir=str(folder / "cache"), **options)


def test_features_are_found_by_name(tmp_path: Path) -> None:
    """By what tests and predicts, and by training that goes on."""
    first, other = (named(tmp_path, columns) for columns in ("a b c", "c a b"))
    for backbone in (Identity(), Fixed()):
        task, trainer = Task(Softmax(), backbone), quiet_trainer(1)
        trainer.fit(task, datamodule=first)
        trainer.save_checkpoint(tmp_path / "a.ckpt")
        wanted = trainer.predict(task, datamodule=first)
        rows = trainer.predict(task, datamodule=other)
        torch.testing.assert_close(rows, wanted)
        assert other.feature_names == ["a", "b", "c"]
        ends = []
        for columns in ("a b c", "c a b"):
            again, trainer = Task(Softmax(), copy.deepcopy(backbone)), quiet_trainer(3)
            data = named(tmp_path, columns)
            trainer.fit(again, datamodule=data, ckpt_path=tmp_path / "a.ckpt", weights_only=True)
            assert again.preprocessing is not None and again.preprocessing["features"] == ["a", "b", "c"]
            ends.append(again.state_dict())
        torch.testing.assert_close(ends[0], ends[1])


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ("more b a", {}, r"no column 'c', which the model was trained on.*; there are 'more', 'b', 'a'$"),
        ("b a c more", {}, "the model was not trained on column 'more'; leave it out of the file$"),
        ("b a c", {"in_memory": 0.0}, "another order than in training.*in the order 'a', 'b', 'c', or .* --data.in_me"),
    ],
)
def test_other_features_are_refused(columns: str, options: dict[str, Any], words: str, tmp_path: Path) -> None:
    first, other = named(tmp_path, "a b c"), named(tmp_path, columns, **options)
    first.setup()
    other.setup()
    with pytest.raises(LDLError, match=rf"{re.escape(columns)}.parquet: .*{words}"):
        other.prepare_as(first.preprocessing)
