"""Pointing'04: a fake tree in the exact layout under every protocol, as angles and as the 93 poses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from fake_faces import write_lines
from fake_pointing04 import pointing04

from ldl import charts
from ldl.cli import main
from ldl.data import Pointing04
from ldl.data.faces.pointing04.files import POSES, read_box
from ldl.errors import LDLError

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The whole layout: 15 persons, 2,790 pictures."""
    return pointing04(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three persons, for whole runs."""
    return pointing04(tmp_path_factory.mktemp("few"), persons=3)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Two persons."""
    return pointing04(tmp_path, persons=2)


def _open(root: Path, **options: Any) -> Pointing04:
    data = Pointing04(root=str(root), **{"crop_size": 16, "val_fraction": 0, **options})
    data.setup()
    return data


def test_the_93_poses() -> None:
    assert len(POSES) == len(set(POSES)) == 93
    assert (POSES[0], POSES[23], POSES[46], POSES[92]) == ((-90, 0), (-30, 45), (0, 0), (90, 0))


PROTOCOLS = {"leave_one_person_out": (15, 186, 0.0), "series": (2, 1395, 1.0), "random_5fold": (5, 558, 1.0)}


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_every_picture_is_tested_once(release: Path, protocol: str) -> None:
    folds, tested, leak = PROTOCOLS[protocol]
    data = _open(release, protocol=protocol)
    assert (data.size, data.num_folds, data.leaky) == (2790, folds, leak > 0)
    tests = []
    for fold in range(folds):
        data.select_fold(fold)
        assert len(data.split.test) == tested and len(data.split.train) == 2790 - tested
        assert data.leak == leak
        tests += data.split.test.tolist()
    assert sorted(tests) == list(range(2790))
    with pytest.raises(LDLError, match=f"fold {folds} must be in 0..{folds - 1}"):
        data.select_fold(folds)


def test_folds_are_persons_and_series(release: Path) -> None:
    data = _open(release, fold=3)
    assert {name.split("/")[0] for name in np.array(data.names)[data.split.test]} == {"Person04"}
    data = _open(release, protocol="series", fold=1)
    stems = [Path(name).stem.removeprefix("personne").removeprefix("person") for name in data.names or []]
    assert {stems[row][2] for row in data.split.test} == {"2"} and {stems[row][2] for row in data.split.train} == {"1"}


def test_poses_are_distributions_over_93_points(small: Path) -> None:
    data = _open(small, batch_size=400)
    (batch,) = list(data.whole_dataloader())
    assert batch["target"].shape == (372, 93) and batch["value"].shape == (372, 2)
    assert len(data.labels) == 93 and data.labels.axis_names == ("pitch", "yaw")
    points = np.array(POSES)
    for row in range(0, 372, 41):
        name = Path((data.names or [])[row]).stem
        pitch, yaw = batch["value"][row].tolist()
        assert name.endswith(f"{pitch:+.0f}{yaw:+.0f}")
        mass = np.exp(-((points - [pitch, yaw]) ** 2).sum(1) / (2 * 15.0**2))
        np.testing.assert_allclose(batch["target"][row], mass / mass.sum(), atol=1e-6)
    assert torch.equal(data.labels.decode(batch["target"], "argmax"), batch["value"])


@pytest.mark.parametrize(("angles", "column", "count"), [("pitch", 0, 9), ("yaw", 1, 13)])
def test_one_angle_alone(small: Path, angles: Any, column: int, count: int) -> None:
    (both,) = list(_open(small, batch_size=400).whole_dataloader())
    data = _open(small, batch_size=400, angles=angles)
    (batch,) = list(data.whole_dataloader())
    assert torch.equal(batch["value"], both["value"][:, column])
    assert batch["target"].shape == (372, count) and data.labels.kind == "ordinal"


def test_faces_are_cut_by_their_boxes(small: Path) -> None:
    """The oval fills the crop: its rim is near the crop's; of the whole picture it covers a part."""
    box, whole = (_open(small, alignment=kind, crop_size=32) for kind in ("box", "none"))
    bright = [(np.stack([data.crops[row] for row in range(93)]).mean(-1) > 120).mean() for data in (box, whole)]
    assert bright[0] > 0.6 and bright[1] < 0.35
    assert box.crops.key != whole.crops.key


def test_a_box_is_its_centre_and_size(tmp_path: Path) -> None:
    picture = tmp_path / "personne01146+0+0.jpg"
    write_lines(picture.with_suffix(".txt"), ["person01146+0+0.jpg", "", "Face", "150", "100", "40", "60"], "\r\n")
    assert read_box(picture).tolist() == [[130, 70], [170, 70], [170, 130], [130, 130]]


def _rename(old: str, new: str) -> Callable[[Path], None]:
    return lambda folder: (folder / f"{old}.jpg").rename(folder / f"{new}.jpg") and None  # type: ignore[func-returns-value]


def _box(*lines: str) -> Callable[[Path], None]:
    return lambda folder: write_lines(folder / "personne01146+0+0.txt", lines) and None  # type: ignore[func-returns-value]


NAMED = "personne01146+0+0.jpg"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (_rename("personne01146+0+0", "frontal"), "frontal.jpg is no name of Pointing'04, such as personne01146"),
        (_rename("personne01146+0+0", "personne01346+0+0"), "personne01346.* is no name of Pointing'04"),
        (_rename("personne01146+0+0", "personne01146+0"), "is no name of Pointing'04"),
        (_rename("personne01146+0+0", "personne01146+20+0"), "has tilt 20 and pan 0, none of the 93 poses: tilts -90,"),
        (_rename("personne01146+0+0", "personne01146+0+10"), "has tilt 0 and pan 10, none of the 93 poses"),
        (_rename("personne01146+0+0", "personne01146+90+15"), "has tilt 90 and pan 15, .* only 0 at tilts -90 and 90"),
        (_rename("personne01146+0+0", "personne01146+15+0"), r"personne01146\+15\+0.jpg and .* are one pose of one"),
        (lambda folder: (folder / "personne01146+0+0.txt").unlink(), r"no box of personne01146\+0\+0.jpg at .*txt"),
        (_box(NAMED, "Face", "150", "100", "40"), "must hold the picture's name, Face, .*got 'personne01146.*40'"),
        (_box(NAMED, "Face", "150", "100", "40", "wide"), "must hold the picture's name, Face"),
        (_box(NAMED, "Face", "150", "100", "40", "0"), "must hold the picture's name, Face"),
        (_box(NAMED, "Face", "nan", "100", "40", "60"), "must hold the picture's name, Face"),
        (_box(NAMED, "Hand", "150", "100", "40", "60"), "must hold the picture's name, Face"),
        (_box("personne01147+0+15.jpg", "Face", "150", "100", "40", "60"), r"is the box of personne01147\+0\+15.jpg;"),
        (_box(), "must hold the picture's name, Face"),
    ],
)
def test_bad_trees_are_refused_in_one_line(
    tmp_path: Path, spoil: Callable[[Path], None], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root = pointing04(tmp_path, persons=1)
    spoil(root / "Pointing04" / "Person01")
    with pytest.raises(LDLError, match=message) as error:
        _open(root)
    assert "\n" not in str(error.value) and "Person01" in str(error.value)
    with pytest.raises(SystemExit):
        main(["--data=Pointing04", f"--data.root={root}", "--model.head=MeanPredictor", "--run_dir", str(root)])
    assert capsys.readouterr().err.count("\n") == 1


def test_places_without_persons_or_with_one_series_are_refused(small: Path) -> None:
    with pytest.raises(LDLError, match="no Pointing'04 at .*: it lies as Pointing04/Person01/personne01146"):
        _open(small, path=str(small / "Pointing04" / "Front"))
    with pytest.raises(LDLError, match="Pointing04.angles 'roll' must be one of both, pitch, yaw"):
        _open(small, angles="roll")
    with pytest.raises(LDLError, match="Pointing04.alignment 'landmarks' must be one of box, none"):
        _open(small, alignment="landmarks")
    for path in (small / "Pointing04").glob("Person*/person*"):
        if path.stem.removeprefix("personne")[2] == "2":
            path.unlink()
    with pytest.raises(LDLError, match="needs pictures of both series"):
        _open(small, protocol="series")


def test_without_boxes_pictures_are_taken_whole(small: Path) -> None:
    for path in (small / "Pointing04").rglob("*.txt"):
        path.unlink()
    assert _open(small, alignment="none").size == 372


def test_pitches_are_thinned_in_training_alone(release: Path) -> None:
    whole, thin, again, other = (
        _open(release, protocol="random_5fold", val_fraction=0.1, removed=removed, fold_seed=seed)
        for removed, seed in ((0.0, 0), (0.5, 0), (0.5, 0), (0.5, 1))
    )
    assert np.array_equal(thin.split.test, whole.split.test) and np.array_equal(thin.split.val, whole.split.val)
    assert len(thin.split.train) == round(0.5 * len(whole.split.train))
    assert set(thin.split.train) < set(whole.split.train)
    assert np.array_equal(thin.split.train, again.split.train)
    assert not np.array_equal(thin.split.train, other.split.train)
    counts = [int((thin.records.facts["pitch"][thin.split.train] == pitch).sum()) for pitch in (0, 15, 30, 60, 90)]
    assert counts == sorted(counts, reverse=True) and counts[0] > 4 * counts[3]
    assert thin.leak == 1.0
    with pytest.raises(LDLError, match="removed 0.9 leaves no bell: at most 0.8"):
        _open(release, protocol="random_5fold", removed=0.9)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("angles", ["both", "pitch", "yaw"])
def test_runs_through_main(
    few: Path, protocol: str, angles: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})
    config = tmp_path / "run.yaml"
    config.write_text(
        "model: {head: AAKNN, backbone: {class_path: Identity, init_args: {flatten: true}}}\n"
        f"data: {{class_path: Pointing04, init_args: {{crop_size: 16, protocol: {protocol}, angles: {angles}}}}}\n"
        "trainer: {max_epochs: 1, enable_progress_bar: false}\nwandb: {mode: disabled}\n"
    )
    main(["-c", str(config), f"--data.root={few}", "--data.val_fraction=0", "--run_dir", str(tmp_path)])
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["protocol"] == protocol and results["leaky"] == (PROTOCOLS[protocol][2] > 0)
    assert results["folds"][0]["leak"] == PROTOCOLS[protocol][2]
    mean = results["mean"]
    assert ("mae_pitch" in mean) == ("mae_yaw" in mean) == (angles == "both")
    if angles == "both":
        assert mean["mae"] == pytest.approx((mean["mae_pitch"] + mean["mae_yaw"]) / 2)
        header = (tmp_path / "predictions.csv").read_text().partition("\n")[0]
        assert "value_pitch,value_yaw,predicted_value_pitch,predicted_value_yaw" in header
    away = np.abs(np.array(POSES)).mean(0)
    assert mean["mae"] < 0.8 * {"both": away.mean(), "pitch": away[0], "yaw": away[1]}[angles]


def test_the_mirror_is_left_out_of_training(small: Path) -> None:
    names = [type(transform).__name__ for transform in _open(small).pipelines[True].transforms]
    assert "HorizontalFlip" not in names and "Affine" in names
