"""``ldl faces``: reports, lists of releases, leakage of protocols, and mistakes in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from fakes import face_lists
from fakes.face_releases import morph_release

from ldl.command.console import command
from ldl.faces.releases import RELEASES

MADE: dict[str, Callable[[Path], Path]] = {
    name: getattr(face_lists, name.removesuffix("-true").replace("-", "_")) for name in RELEASES
}


def listed(name: str, root: Path) -> tuple[Path, Path | None]:
    """Folder and published list of a made-up release."""
    MADE[name](root)
    return (root / "pictures", root / "AgeDB.json") if name == "benchmark" else (root, None)


def test_a_release_is_reported_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, _ = listed("appa-real", tmp_path / "set")
    command(
        ["faces", "APPA-real", str(folder), "--out", str(tmp_path / "faces.csv"), "--names", str(tmp_path / "n.txt")]
    )
    output = capsys.readouterr().out
    assert "21 named, 21 of them there" in output and "the release has 7591 images, 21 are listed" in output
    assert "part       test 5, train 12, val 4" in output and "parts                        1" in output
    assert len((tmp_path / "n.txt").read_text().splitlines()) == 21
    assert output.endswith(f"--data FaceFolder --data.path {tmp_path / 'faces.csv'} --data.protocol parts\n")


def test_leaks_of_every_protocol_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, lists = listed("benchmark", tmp_path)
    command(["faces", "benchmark", str(folder), "--list", str(lists), "--folds", "4"])
    output = capsys.readouterr().out
    assert "left out: 1 of 24 images" in output and "23 named, 23 of them there" in output
    rows = {line.split()[0]: line.split() for line in output.splitlines() if line.endswith("%")}
    assert rows["folders"][1:] == ["5", "11-16", "3-6", "4-6", "100.0%,", "0.0%"]
    assert rows["subject_exclusive"][-2] == rows["leave_one_person_out"][-2] == "0.0%,"
    assert "parts" not in rows


def test_morph_is_looked_at_without_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = morph_release(tmp_path)
    photos = sorted((root / "MORPH" / "Album2").iterdir())
    for photo in photos:
        photo.write_bytes(b"")
    photos[0].unlink()
    command(["faces", "Morph", str(root / "MORPH")])
    output = capsys.readouterr().out
    assert "72 named, 71 of them there; the first that is not:" in output and "persons    24, of 3 to 3" in output
    rows = {line.split()[0]: line.split()[1:] for line in output.splitlines() if line.endswith("%")}
    assert rows["subject_exclusive"] == ["5", "54-60", "0", "12-18", "0.0%,", "0.0%"]
    assert rows["random_80_20"][-2] == "100.0%,"
    assert "not those of the whole release" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["agedbb", "x"], "no set of faces 'agedbb'; did you mean 'agedb'"),
        (["agedb", "nowhere"], "no folder at nowhere"),
        (["Morph", ".", "--out", "x.csv"], "--out is for releases"),
        (["imdb-clean", "."], "imdb_train_new_1024.csv"),
    ],
)
def test_mistakes_are_told_in_a_line(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        command(["faces", *arguments])
    assert message in capsys.readouterr().err
