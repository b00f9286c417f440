"""The folders of the Facial Age Estimation Benchmark, and persons that a protocol keeps apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldl.data.images.records import ImageRecords, SplitRequest
from ldl.errors import LDLError
from ldl.faces.protocols import FOLDERS, LEAVE_ONE_PERSON_OUT, SUBJECT_EXCLUSIVE
from ldl.protocols import Fold


def request(fold: int = 0, persons: list[str] | None = None, **facts: Any) -> SplitRequest:
    columns = {name: np.array(column) for name, column in facts.items()}
    count = len(next(iter(columns.values()), persons or []))
    files = [f"{number}.png" for number in range(count)]
    groups = None if persons is None else np.array(persons)
    return SplitRequest(ImageRecords(Path(), files, np.arange(count), groups, facts=columns), 2, fold, 0)


def test_ten_folders_turn_and_three_are_the_sets() -> None:
    turned = FOLDERS.rows(request(2, folder=list("0123456789")))
    assert isinstance(turned, Fold)
    sets = [rows.tolist() for rows in (turned.train, turned.val, turned.test)]
    assert sets == [[4, 5, 6, 7, 8, 9], [0, 1], [2, 3]]
    fixed = FOLDERS.rows(request(folder=list("2010")))
    assert isinstance(fixed, Fold)
    assert [rows.tolist() for rows in (fixed.train, fixed.val, fixed.test)] == [[1, 3], [2], [0]]
    assert FOLDERS.count(request(folder=list("0123456789"))) == 5 and FOLDERS.count(request(folder=list("012"))) == 1


@pytest.mark.parametrize(
    ("folders", "message"),
    [("01a", "2.png has 'a'; correct it"), ("013", "each of folders 0 to 9, or 0 to 2; the list has 0 to 3")],
)
def test_other_folders_are_refused(folders: str, message: str) -> None:
    with pytest.raises(LDLError, match=message):
        FOLDERS.rows(request(folder=list(folders)))


def test_one_person_is_left_out() -> None:
    train, test = LEAVE_ONE_PERSON_OUT.rows(request(1, ["b", "a", "b", "c"]))  # type: ignore[misc]
    assert (train.tolist(), test.tolist()) == ([1, 3], [0, 2])
    assert LEAVE_ONE_PERSON_OUT.count(request(0, ["b", "a", "b", "c"])) == 3


@pytest.mark.parametrize("protocol", [LEAVE_ONE_PERSON_OUT, SUBJECT_EXCLUSIVE])
def test_unknown_persons_are_one_line(protocol: Any) -> None:
    with pytest.raises(LDLError, match="the list names no persons; add a column 'person'"):
        protocol.rows(request(folder=["0"]))
