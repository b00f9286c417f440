"""``Task`` from plain Python, without the command line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from torch.optim import SGD

from ldl.backbones.base import Backbone, Identity
from ldl.backbones.timm import Timm
from ldl.bags import Bagged
from ldl.callbacks import Calibrate, CheckFinite, FitHead, LeafUpdate, Resume
from ldl.data import RotatedDigits, TabularValues
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import AAKNN, LDLF, MSLP, CostSensitiveForest, MaxEnt, MeanPredictor, Softmax, StructRF, Trained
from ldl.labels import LabelSpace
from ldl.task import Task
from ldl.validation.setup import warn_of_bf16


def _trainer(folder: Path, **options: object) -> pl.Trainer:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    return pl.Trainer(max_epochs=1, default_root_dir=folder, **{**quiet, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("head", "backbone", "precision"),
    [
        (LDLF(trees=2, depth=3, batches=2), Identity(flatten=True), "32-true"),
        pytest.param(LDLF(trees=2, depth=3, batches=2), Timm("test_resnet"), "bf16-mixed", marks=pytest.mark.slow),
        (Softmax("dldl_v2", hidden=[8]), Identity(flatten=True), "64-true"),
        (MeanPredictor(), Identity(flatten=True), "32-true"),
    ],
    ids=["ldlf", "timm-bf16", "softmax-64", "fitted"],
)
def test_fit_test_and_reload(head: Head, backbone: Backbone, precision: str, tmp_path: Path) -> None:
    pl.seed_everything(0)
    data = RotatedDigits(turns=1)
    task = Task(head, backbone, optimizer=lambda parameters: SGD(parameters, lr=0.1), decoder="median")
    trainer = _trainer(tmp_path, precision=precision)
    # With AVX-512, oneDNN's bf16 gradient of a 3x3 kernel over a 1x1 map reads memory that nobody has written.
    with torch.backends.mkldnn.flags(enabled=not torch.cpu._is_avx512_supported()):
        trainer.fit(task, datamodule=data)
    (tested,) = trainer.test(task, datamodule=data, verbose=False)
    trainer.save_checkpoint(tmp_path / "task.ckpt")
    again = Task.load_from_checkpoint(tmp_path / "task.ckpt")
    assert again.decoder == "median" and again.labels == data.labels
    inputs = data.images[data.split.test].to(next(again.parameters()).dtype)
    with torch.no_grad():
        distribution = again(inputs)
    torch.testing.assert_close(distribution.sum(-1), torch.ones(len(inputs), dtype=distribution.dtype))
    error = (again.labels.decode(distribution, "median") - data.values[data.split.test]).abs().mean()
    assert error == pytest.approx(tested["test_mae"], abs=0.5 if "bf16" in precision else 1e-3)


def test_callbacks_come_with_the_head(tmp_path: Path) -> None:
    every = [Resume, CheckFinite, Calibrate]
    for head, callbacks in ((LDLF(), [LeafUpdate]), (MeanPredictor(), [FitHead]), (Softmax(), [])):
        assert [type(found) for found in Task(head).configure_callbacks()] == [*callbacks, *every]


def test_mean_predictor_learns_the_mean_of_the_training_part(tmp_path: Path) -> None:
    data = RotatedDigits(turns=1)
    task = Task(MeanPredictor(), Identity(flatten=True))
    _trainer(tmp_path).fit(task, datamodule=data)
    torch.testing.assert_close(task.head.mean, data.columns["target"][data.split.train].mean(0))


def test_leaves_change_only_by_their_update(tmp_path: Path) -> None:
    data = RotatedDigits(turns=1, batch_size=64)
    changed = []

    class Leaves(pl.Callback):
        def on_train_batch_start(self, trainer: pl.Trainer, pl_module: Task, *_: object) -> None:
            leaves = pl_module.head.leaves
            changed.append(not torch.equal(leaves, torch.full_like(leaves, 1 / 49)))

    task = Task(LDLF(trees=2, depth=3, batches=5), Identity(flatten=True))
    _trainer(tmp_path, limit_train_batches=7, callbacks=[Leaves()]).fit(task, datamodule=data)
    assert changed == [False] * 5 + [True] * 2
    task = Task(LDLF(trees=2, depth=3, batches=5), Identity(flatten=True))
    _trainer(tmp_path, limit_train_batches=4).fit(task, datamodule=data)  # shorter than batches: at the epoch's end
    assert not torch.equal(task.head.leaves, torch.full_like(task.head.leaves, 1 / 49))


def test_frozen_backbone_is_not_trained(tmp_path: Path) -> None:
    pl.seed_everything(0)
    data = RotatedDigits(turns=1)
    task = Task(Softmax(), Timm("test_resnet", freeze=True), optimizer=lambda parameters: SGD(parameters, lr=0.1))
    data.setup()
    task.build(data.labels, data.input_shape)
    before = {name: value.clone() for name, value in task.state_dict().items()}
    _trainer(tmp_path).fit(task, datamodule=data)
    for name, value in task.state_dict().items():
        if name.startswith("backbone"):
            assert torch.equal(value, before[name]), name
    assert not torch.equal(task.head.logits[0].weight, before["head.logits.0.weight"])


def test_unknown_labels_are_asked_for(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="pass Trainer.fit a data module of ldl, or call task.build first"):
        _trainer(tmp_path).fit(Task(Softmax()), torch.utils.data.DataLoader([0]))


@pytest.mark.parametrize(
    ("head", "precision"),
    [
        (AAKNN(), "16-true"), (AAKNN(), "bf16-true"), (MeanPredictor(), "bf16-true"), (StructRF(trees=2), "bf16-true"),
        (CostSensitiveForest(trees=2), "bf16-true"), (MSLP(), "bf16-true"), (Softmax("dldl_v2"), "bf16-true"),
        (LDLF(trees=2, depth=3, batches=2), "bf16-true"), (Trained(Softmax()), "bf16-true"),
        (MaxEnt(l2=0.1), "bf16-true"),
    ],
)  # fmt: skip
def test_networks_of_16_bits_do_not_round_the_truth(head: Head, precision: str, tmp_path: Path) -> None:
    years = np.arange(60) % 30 + 1971.0
    np.savez(tmp_path / "rows.npz", features=np.random.default_rng(0).normal(size=(60, 4)), value=years)
    data = TabularValues(path=str(tmp_path / "rows.npz"), protocol="random_kfold")
    task, trainer = Task(head), _trainer(tmp_path, precision=precision)
    trainer.fit(task, datamodule=data)
    (tested,) = trainer.test(task, datamodule=data, verbose=False)
    found = trainer.predict(task, datamodule=data)
    assert found is not None
    for name in ("value", "target"):
        served = torch.cat([batch[name] for batch in found])  # type: ignore[index]
        assert torch.equal(served, data.columns[name][data.split.test])
    predicted = torch.cat([batch["predicted_value"] for batch in found])  # type: ignore[index]
    assert tested["test_mae"] == pytest.approx(float((predicted - data.columns["value"][data.split.test]).abs().mean()))
    if isinstance(head, AAKNN):
        assert torch.equal(task.head.distributions, data.columns["target"][data.split.train])
    trainer.save_checkpoint(tmp_path / "task.ckpt")
    Task.load_from_checkpoint(tmp_path / "task.ckpt")


def test_built_for_one_label_space_only() -> None:
    task = Task(Softmax())
    labels = LabelSpace.ordinal(range(5), "stars")
    task.build(labels, (4,))
    task.build(labels, (4,))
    with pytest.raises(LDLError, match=r"made for inputs \(4,\) and 5 labels \(0 to 4 stars\).*3 labels \(a to c\)"):
        task.build(LabelSpace.nominal(["a", "b", "c"]), (4,))


def test_mixup_must_not_be_negative() -> None:
    with pytest.raises(LDLError, match=r"model\.mixup -1 must be in 0\.\.1000, 0 for none"):
        Task(Softmax(), mixup=-1)


def test_bags_are_not_mixed() -> None:
    with pytest.raises(LDLError, match=r"model\.mixup 0\.4 mixes single instances, and Bagged takes bags; set it to 0"):
        Task(Bagged(), mixup=0.4)


def test_bf16_is_warned_of_where_it_may_give_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    here = torch.device("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        monkeypatch.setattr(torch.cpu, "_is_avx512_supported", lambda: False)
        warn_of_bf16("bf16-mixed", here)
        monkeypatch.setattr(torch.cpu, "_is_avx512_supported", lambda: True)
        warn_of_bf16("16-mixed", here)
        warn_of_bf16("bf16-mixed", torch.device("meta"))
    with pytest.warns(UserWarning, match="bf16-mixed on a processor with AVX-512.*--trainer.precision 32-true"):
        warn_of_bf16("bf16-mixed", here)


def test_lightning_beside_pytorch_lightning_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightning.pytorch", ModuleType("lightning.pytorch"))
    with pytest.warns(UserWarning, match="write `import pytorch_lightning as pl` in place of `import lightning as L`"):
        Task(Softmax())
