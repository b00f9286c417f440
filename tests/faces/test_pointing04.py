"""Pointing'04: a fake tree in the exact layout under every protocol, as angles and as the 93 poses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fakes.blank_charts import leave_out_charts
from fakes.face_releases import write_lines
from fakes.pointing04 import pointing04

from ldl.command import main
from ldl.errors import LDLError
from ldl.faces import Pointing04
from ldl.faces.pointing04 import POSES, read_pose_box

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two of the 15 persons: 372 images."""
    return pointing04(tmp_path_factory.mktemp("data"), persons=2)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One person."""
    return pointing04(tmp_path_factory.mktemp("one"), persons=1)


@pytest.fixture
def small(release: Path, tmp_path: Path) -> Path:
    """A copy to change."""
    return shutil.copytree(release, tmp_path / "copy")


def _open(root: Path, **options: Any) -> Pointing04:
    data = Pointing04(root=str(root), **{"crop_size": 16, "val_fraction": 0, **options})
    data.setup()
    return data


def test_the_93_poses() -> None:
    assert len(POSES) == len(set(POSES)) == 93
    assert (POSES[0], POSES[23], POSES[46], POSES[92]) == ((-90, 0), (-30, 45), (0, 0), (90, 0))


PROTOCOLS = {"leave_one_person_out": (2, 186, 0.0), "series": (2, 186, 1.0)}


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_every_picture_is_tested_once(release: Path, protocol: str) -> None:
    folds, tested, leak = PROTOCOLS[protocol]
    data = _open(release, protocol=protocol)
    assert (data.size, data.num_folds, data.leaky) == (372, folds, leak > 0)
    tests = []
    for fold in range(folds):
        data.select_fold(fold)
        assert len(data.split.test) == tested and len(data.split.train) == 372 - tested
        assert data.leak == leak
        tests += data.split.test.tolist()
    assert sorted(tests) == list(range(372))
    with pytest.raises(LDLError, match=f"fold {folds} must be in 0..{folds - 1}"):
        data.select_fold(folds)


def test_folds_are_persons_and_series(release: Path) -> None:
    data = _open(release, fold=1)
    assert {name.split("/")[0] for name in np.array(data.names)[data.split.test]} == {"Person02"}
    data = _open(release, protocol="series", fold=1)
    stems = [Path(name).stem.removeprefix("personne").removeprefix("person") for name in data.names or []]
    assert {stems[row][2] for row in data.split.test} == {"2"} and {stems[row][2] for row in data.split.train} == {"1"}


def test_poses_are_distributions_over_93_points(release: Path) -> None:
    data = _open(release, batch_size=400)
    (batch,) = list(data.whole_dataloader())
    assert batch["target"].shape == (372, 93) and batch["value"].shape == (372, 2)
    assert len(data.labels) == 93 and data.labels.axis_names == ("pitch", "yaw")
    points = np.array(POSES, np.float32)
    for row in range(0, 372, 41):
        name = Path((data.names or [])[row]).stem
        pitch, yaw = batch["value"][row].tolist()
        assert name.endswith(f"{pitch:+.0f}{yaw:+.0f}")
        np.testing.assert_allclose(batch["target"][row] @ points, [pitch, yaw], atol=1e-4)
        assert batch["target"][row].max() < 0.5 or abs(pitch) >= 60 or abs(yaw) == 90
    assert torch.equal(data.labels.decode(batch["target"], "argmax"), batch["value"])


@pytest.mark.parametrize(("angles", "column", "count"), [("pitch", 0, 9), ("yaw", 1, 13)])
def test_one_angle_alone(release: Path, angles: Any, column: int, count: int) -> None:
    (both,) = list(_open(release, batch_size=400).whole_dataloader())
    data = _open(release, batch_size=400, angles=angles)
    (batch,) = list(data.whole_dataloader())
    assert torch.equal(batch["value"], both["value"][:, column])
    assert batch["target"].shape == (372, count) and data.labels.kind == "ordinal"


def test_a_box_is_its_centre_and_size(tmp_path: Path) -> None:
    picture = tmp_path / "personne01146+0+0.jpg"
    write_lines(picture.with_suffix(".txt"), ["person01146+0+0.jpg", "", "Face", "150", "100", "40", "60"], "\r\n")
    assert read_pose_box(picture).tolist() == [[130, 70], [170, 70], [170, 130], [130, 130]]


def _rename(old: str, new: str) -> Callable[[Path], None]:
    return lambda folder: (folder / f"{old}.jpg").rename(folder / f"{new}.jpg") and None  # type: ignore[func-returns-value]


def _box(*lines: str) -> Callable[[Path], None]:
    return lambda folder: write_lines(folder / "personne01146+0+0.txt", lines) and None  # type: ignore[func-returns-value]


NAMED = "personne01146+0+0.jpg"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_rename("personne01146+0+0", "frontal"), "frontal.jpg is no name of Pointing'04, such as personne01146"),
        (_rename("personne01146+0+0", "personne01146+90+15"), r"personne01146\+90\+15.jpg is no name of Pointing'04"),
        (_rename("personne01146+0+0", "personne01146+15+0"), r"personne01146\+15\+0.jpg and .* are one pose of one"),
        (lambda folder: (folder / "personne01146+0+0.txt").unlink(), r"no box of personne01146\+0\+0.jpg at .*txt"),
        (_box(NAMED, "Face", "150", "100", "40"), "must hold the name .*, Face, .*got 'personne01146.*40'"),
        (_box(NAMED, "Face", "nan", "100", "40", "60"), "must hold the name"),
        (_box("personne01147+0+15.jpg", "Face", "150", "100", "40", "60"), "must hold the name personne01146"),
    ],
)
def test_bad_trees_are_refused_in_one_line(
    tmp_path: Path, spoil: Callable[[Path], None], message: str, one: Path
) -> None:
    root = shutil.copytree(one, tmp_path / "tree")
    spoil(root / "Pointing04" / "Person01")
    with pytest.raises(LDLError, match=message) as error:
        _open(root)
    assert "\n" not in str(error.value) and "Person01" in str(error.value)


def test_places_without_persons_or_with_one_series_are_refused(small: Path) -> None:
    with pytest.raises(LDLError, match="no Pointing'04 at .*: it lies as Pointing04/Person01/personne01146"):
        _open(small, path=str(small / "Pointing04" / "Front"))
    for path in (small / "Pointing04").glob("Person*/person*"):
        if path.stem.removeprefix("personne")[2] == "2":
            path.unlink()
    with pytest.raises(LDLError, match="needs images of both series"):
        _open(small, protocol="series")


def test_pitches_are_thinned_in_training_alone(release: Path) -> None:
    whole, thin, again, other = (
        _open(release, protocol="random_5fold", removed=removed, fold_seed=seed)
        for removed, seed in ((0.0, 0), (0.5, 0), (0.5, 0), (0.5, 1))
    )
    assert np.array_equal(thin.split.test, whole.split.test)
    assert len(thin.split.train) == round(0.5 * len(whole.split.train))
    assert set(thin.split.train) < set(whole.split.train)
    assert np.array_equal(thin.split.train, again.split.train)
    assert not np.array_equal(thin.split.train, other.split.train)
    counts = [int((thin.records.facts["pitch"][thin.split.train] == pitch).sum()) for pitch in (0, 15, 30, 60, 90)]
    assert counts == sorted(counts, reverse=True) and counts[0] > 4 * counts[3]
    assert thin.leak == 1.0
    with pytest.raises(LDLError, match="removed 0.9 leaves no bell: at most 0.8"):
        _open(release, protocol="random_5fold", removed=0.9)


@pytest.mark.slow
def test_runs_through_main(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_out_charts(monkeypatch)
    config = tmp_path / "run.yaml"
    config.write_text(
        "model: {head: AAKNN, backbone: {class_path: Identity, init_args: {flatten: true}}}\n"
        "data: {class_path: Pointing04, init_args: {crop_size: 16, protocol: series}}\n"
        "trainer: {max_epochs: 1, enable_progress_bar: false}\nwandb: {mode: disabled}\n"
    )
    main(["-c", str(config), f"--data.root={release}", "--data.val_fraction=0", "--run_dir", str(tmp_path)])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["protocol"] == "series" and results["leaky"] and results["folds"][0]["leak"] == 1
    mean = results["mean"]
    assert mean["mae"] == pytest.approx((mean["mae_pitch"] + mean["mae_yaw"]) / 2)
    assert mean["mae"] < 0.8 * np.abs(np.array(POSES)).mean()
    header = (tmp_path / "predictions.csv").read_text().partition("\n")[0]
    assert "value_pitch,value_yaw,predicted_value_pitch,predicted_value_yaw" in header


def test_the_mirror_is_left_out_of_training(release: Path) -> None:
    names = [type(transform).__name__ for transform in _open(release).pipelines[True].transforms]
    assert "HorizontalFlip" not in names and "Affine" in names
