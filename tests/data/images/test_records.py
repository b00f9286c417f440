"""Records of images are taken and joined row by row; requests for what a list lacks are one line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldl.data.images.records import ImageRecords, SplitRequest
from ldl.errors import LDLError

BOX = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]])


@pytest.fixture
def records() -> ImageRecords:
    facts = {"race": np.array(["a", "b", "c"])}
    return ImageRecords(
        Path("/set"), ["0.png", "1.png", "2.png"], np.arange(3.0), np.array([5, 5, 7]), [None, BOX, None], facts=facts
    )


def test_rows_are_taken_from_every_column(records: ImageRecords) -> None:
    some = records.take(np.array([2, 1]))
    assert some.files == ["2.png", "1.png"] and some.values.tolist() == [2, 1] and some.groups.tolist() == [7, 5]
    assert some.facts["race"].tolist() == ["c", "b"] and some.sigmas is None
    assert some.anchor(0) is None and some.anchor(1) is BOX
    assert records.alignment == some.alignment == "box" and records.take(np.array([0])).alignment == "none"


def test_a_joined_set_is_extra_and_has_groups_of_its_own(records: ImageRecords) -> None:
    other = ImageRecords(Path("/other"), ["a.png", "b.png"], np.array([8.0, 9.0]), sigmas=np.array([1.0, 2.0]))
    joined = records.joined(other, sigma=3.0)
    assert joined.paths() == [*records.paths(), *other.paths()] and joined.values.tolist() == [0, 1, 2, 8, 9]
    assert joined.groups.tolist() == [5, 5, 7, 8, 9] and joined.sigmas.tolist() == [3, 3, 3, 1, 2]
    assert joined.extra.tolist() == [False] * 3 + [True] * 2 and joined.anchor(1) is BOX and joined.anchor(4) is None


def test_what_a_list_lacks_is_one_line(records: ImageRecords) -> None:
    request = SplitRequest(records, 2, 0, 0)
    assert request.fact("race", "a to c") is records.facts["race"]
    with pytest.raises(LDLError, match=r"needs a column 'gender' \(M or F\) in the list; add it"):
        request.fact("gender", "M or F")
