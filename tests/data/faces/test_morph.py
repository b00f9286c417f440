"""MORPH as it is released and as Kaggle has it, under every protocol, from the files to ``results.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_faces import MORPH_SPLITS, morph_faces, morph_folders, morph_lists, morph_release, open_morph, write_lines

from ldl import charts
from ldl.cli import main
from ldl.data.faces.morph.names import parse_name, stem

FOLDS = {"random_10fold": 10, "s1_s2_s3": 2, "morph_sub": 6, "coral_list": 1}


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The fake pictures in both layouts, as data folders, with the lists below each."""
    folder = tmp_path_factory.mktemp("data")
    roots = {"release": morph_release(folder / "release"), "folders": morph_folders(folder / "folders")}
    for root in roots.values():
        morph_lists(root)
    return roots


@pytest.mark.parametrize("layout", ["release", "folders"])
@pytest.mark.parametrize(("protocol", "split_list"), MORPH_SPLITS)
def test_every_protocol(layout: str, protocol: str, split_list: str | None, roots: dict[str, Path]) -> None:
    count = open_morph(roots[layout], protocol, split_list).num_folds
    assert count == FOLDS.get(protocol, 5)
    leaks = []
    for fold in range(count):
        data = open_morph(roots[layout], protocol, split_list, fold=fold)
        parts = [data.split.train, data.split.val, data.split.test]
        assert all(len(part) for part in parts)
        assert len(np.unique(np.concatenate(parts))) == sum(map(len, parts)) <= data.size == 72
        assert not np.isin(data.groups[data.split.val], data.groups[data.split.train]).any()
        leaks.append(data.leak)
    assert data.leaky == (protocol != "subject_exclusive") == (max(leaks) > 0)


@pytest.mark.parametrize(("protocol", "split_list"), MORPH_SPLITS)
def test_both_layouts_are_cut_alike(protocol: str, split_list: str | None, roots: dict[str, Path]) -> None:
    names = []
    for root in roots.values():
        data = open_morph(root, protocol, split_list)
        names.append([[stem(data.records.files[row]) for row in part] for part in vars(data.split).values()])
    assert names[0] == names[1]


@pytest.mark.parametrize("layout", ["release", "folders"])
def test_batches_hold_what_the_names_say(layout: str, roots: dict[str, Path]) -> None:
    data = open_morph(roots[layout], batch_size=10, fold=1)
    faces = dict(morph_faces())
    seen = set()
    for loader in (data.train_dataloader(), data.val_dataloader(), data.test_dataloader()):
        for batch in loader:
            real = batch["weight"] > 0
            assert batch["input"].shape[1:] == (3, 16, 16)
            assert batch["input"].dtype == torch.uint8
            assert torch.equal(batch["target"].argmax(1) + 16, batch["value"].long())
            for row, age in zip(batch["index"][real].tolist(), batch["value"][real].tolist()):
                name = parse_name(data.records.files[row])
                assert name is not None
                assert (name.age, name.person) == (age, data.groups[row])
                assert data.records.facts["gender"][row] == name.gender
                assert data.records.facts["race"][row] == faces[stem(data.records.files[row]).upper()]
                seen.add(row)
    assert seen == set(range(72))
    # The pictures were made the brighter, the older: so each is served with its own age.
    whole = next(iter(open_morph(roots[layout], batch_size=72).whole_dataloader()))
    brightness = whole["input"].float().mean((1, 2, 3))
    assert np.corrcoef(brightness.numpy(), whole["value"].numpy())[0, 1] > 0.99


def _quiet_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    # Drawing takes most of a short run, and is tested elsewhere.
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})
    monkeypatch.setattr(charts, "learning_curves", lambda *arguments: None)


def _run(root: Path, protocol: str, split_list: str | None, folder: Path, *options: str) -> dict[str, Any]:
    place = [f"--data.split_list=lists/{split_list}"] if split_list else []
    main(
        ["-c", str(write_lines(folder / "run.yaml", ["model: {head: Softmax, backbone: Identity}", "data: Morph"]))]
        + ["--model.backbone.flatten=true", f"--data.root={root}", f"--data.protocol={protocol}", *place]
        + ["--data.crop_size=16", "--data.val_fraction=0.25", "--trainer.max_epochs=1", "--wandb.mode=disabled"]
        + ["--trainer.enable_progress_bar=false", "--trainer.enable_model_summary=false"]
        + ["--run_dir", str(folder), *options]
    )
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize(("protocol", "split_list"), MORPH_SPLITS)
def test_train_and_test(
    protocol: str, split_list: str | None, roots: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _quiet_charts(monkeypatch)
    results = _run(roots["release"], protocol, split_list, tmp_path)
    data = open_morph(roots["release"], protocol, split_list)
    assert (results["data"], results["protocol"], results["leaky"]) == ("Morph", protocol, data.leaky)
    (fold,) = results["folds"]
    assert [fold["n_train"], fold["n_val"], fold["n_test"]] == [len(part) for part in vars(data.split).values()]
    assert fold["leak"] == data.leak
    assert 0 < results["mean"]["mae"] < 61


@pytest.mark.parametrize("split_list", [None, "3_Fold_BW"])
def test_cross_validation_averages_both_directions(
    split_list: str | None, roots: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _quiet_charts(monkeypatch)
    results = _run(roots["folders"], "s1_s2_s3", split_list, tmp_path, "--stage=crossval")
    figures = [fold["metrics"]["mae"] for fold in results["folds"]]
    assert len(figures) == 2
    assert results["mean"]["mae"] == pytest.approx(sum(figures) / 2)


def test_what_a_protocol_leaves_out_is_printed(roots: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = open_morph(roots["release"], "caucasian", "RS_partial", fold=2)
    assert "39 of 72 pictures are in no part of caucasian, fold 2" in capsys.readouterr().out
    assert set(data.records.facts["race"][np.concatenate(list(vars(data.split).values()))]) == {"W"}
    open_morph(roots["release"], "subject_exclusive")
    assert "in no part" not in capsys.readouterr().out
