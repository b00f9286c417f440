"""A known set that is not there is named whole: where it was looked for, its layout, its source, its licence."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldl.data import LDLDataModule, RotatedDigits, ShiftedDigits, TabularLDL
from ldl.data.sources import known_source
from ldl.edges import BSDS500
from ldl.errors import LDLError
from ldl.faces import FGNET, FGNETAAM, Morph, Pointing04, UTKFace

SETS = {
    "FG-NET": lambda root: FGNET(root=root),
    "UTKFace": lambda root: UTKFace(root=root),
    "MORPH II": lambda root: Morph(root=root),
    "Pointing'04": lambda root: Pointing04(root=root),
    "BSDS500": lambda root: BSDS500(root=root),
    "MNIST": lambda root: ShiftedDigits(root=root),
    "FG-NET's appearance features": lambda root: FGNETAAM(root=root),
    "Movie": lambda root: TabularLDL(path="ldl/Movie.mat", root=root),
}


@pytest.mark.parametrize("name", SETS)
def test_all_that_one_needs_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LDL_DATA", raising=False)
    root = tmp_path / "data"
    root.mkdir()
    (root / "holiday.jpg").touch()
    data: LDLDataModule = SETS[name](str(root))
    with pytest.raises(LDLError) as raised:
        data.setup()
    source = known_source(data)
    assert source is not None and source.name == name
    said = str(raised.value)
    assert said.startswith(f"no {name} at {tmp_path}/data/")
    assert f": it lies as {source.layout} below the data folder {root}; get it" in said
    assert source.where in said and f"({source.licence})" in said and "--data.root" in said


def test_a_folder_that_was_named_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(
        LDLError, match=rf"no FG-NET at {tmp_path}/faces: it lies as FGNET/images/001A02.JPG \(.*\) and "
    ):
        FGNET(path=str(tmp_path / "faces")).setup()


def test_sets_of_ones_own_have_no_source(tmp_path: Path) -> None:
    assert known_source(TabularLDL(path="own.mat")) is None
    found = known_source(RotatedDigits())
    assert found is not None and found.name == "scikit-learn's digits"


@pytest.mark.parametrize("path", ["../SJAFFE.mat", "a/../../SJAFFE.mat", "{outside}/SJAFFE.mat", "link/SJAFFE.mat"])
def test_downloads_stay_in_the_data_folder(path: str, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "data/link").symlink_to(tmp_path / "outside")
    given = path.format(outside=tmp_path / "outside")
    with pytest.raises(LDLError, match="leads out of the data folder"):
        TabularLDL(given, root=str(tmp_path / "data"), download=True).setup()
    assert not list((tmp_path / "outside").iterdir())
