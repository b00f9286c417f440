"""FG-NET's appearance features: the persons of their rows."""

from __future__ import annotations

import collections
import os
from pathlib import Path

import numpy as np
import pytest
from fakes import face_releases

from ldl.errors import LDLError
from ldl.faces.fgnet_aam import FGNETAAM, IMAGES

REAL = Path(os.environ.get("LDL_DATA", "data"))


def test_fgnet_rows_are_given_to_82_persons(tmp_path: Path) -> None:
    data = FGNETAAM(path=str(face_releases.fgnet_aam(tmp_path / "FG-NET_AAM.mat")))
    data.setup()
    assert data.num_folds == 82 and data.labels.unit == "years" and data.leaky is False
    assert [len(rows) for rows in np.split(np.arange(1002), np.cumsum(IMAGES))[:-1]] == np.bincount(
        data.groups
    ).tolist()
    np.savez(tmp_path / "other.npz", features=np.zeros((40, 3)), age=np.arange(40))
    with pytest.raises(LDLError, match="40 rows, not FG-NET's 1002"):
        FGNETAAM(path=str(tmp_path / "other.npz")).setup()


@pytest.mark.skipif(not (REAL / "FGNET/images").is_dir(), reason="needs FGNET and ldl/FG-NET_AAM.mat in LDL_DATA")
def test_persons_have_the_ages_of_the_pictures() -> None:
    data = FGNETAAM()
    data.setup()
    ages = collections.defaultdict(list)
    for path in (REAL / "FGNET/images").iterdir():
        ages[int(path.name[:3])].append(float(path.name[4:6]))
    assert data.values is not None and data.groups is not None
    for person, expected in ages.items():
        assert sorted(expected) == sorted(data.values[data.groups == person - 1])
