"""Kinds of columns of a table, and their encoding as features."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldl.data import TabularValues
from ldl.data.tables.columns import Encoding, typed
from ldl.errors import LDLError

DAYS = [datetime.date(2024, 1, 31), datetime.date(2023, 12, 24), None]
FRAME = pd.DataFrame(
    {
        "truth": pd.array([True, None, False], "boolean"),
        "whole": pd.array([1, None, 3], "Int64"),
        "text": [" a", "b", None],
        "coded": pd.Categorical([1, 2, 1]),
        "day": DAYS,
        "time": pd.to_datetime(DAYS),
        "zone": pd.to_datetime(DAYS).tz_localize("Europe/Berlin"),
        "iso": ["2024-01-31", "2023-12-24T23:59", ""],
    }
)
DATE = {" year": [2024, 2023, 2023], " month": [1, 12, 1], " day": [31, 24, 24], " weekday": [2, 6, 2]}
EXPECTED = {
    "truth": [1, 0, 0], "truth missing": [0, 1, 0], "whole": [1, 1, 3], "whole missing": [0, 1, 0],
    "text=a": [1, 0, 0], "text=b": [0, 1, 0], "text=missing": [0, 0, 1], "coded=1": [1, 0, 1], "coded=2": [0, 1, 0],
}  # fmt: skip
for name in ("day", "time", "zone", "iso"):
    EXPECTED |= {f"{name}{part}": column for part, column in DATE.items()} | {f"{name} missing": [0, 0, 1]}


def test_rare_categories_share_a_feature() -> None:
    texts = [f"c{k:02}" for k in range(40) for _ in range(40 - k)]
    frame = typed(pd.DataFrame({"c": texts}), "t")
    encoding = Encoding.fit(frame, True)
    assert encoding.names == [f"c=c{k:02}" for k in range(30)] + ["c=other"]
    unseen = encoding.transform(pd.DataFrame({"c": ["c00", "c39", "new", None]}), "t")
    assert unseen.argmax(1).tolist() == [0, 30, 30, 0] and unseen.sum(1).tolist() == [1, 1, 1, 0]


def test_kinds_of_columns(tmp_path: Path) -> None:
    encoding = Encoding.fit(typed(FRAME, "t"), True)
    assert encoding.names == list(EXPECTED)
    np.testing.assert_array_equal(encoding.transform(FRAME, "t"), np.array(list(EXPECTED.values())).T)
    again = Encoding.from_state(json.loads(json.dumps(encoding.state())))
    np.testing.assert_array_equal(again.transform(FRAME, "t"), encoding.transform(FRAME, "t"))
    assert np.isnan(Encoding.fit(typed(FRAME, "t"), False).transform(FRAME, "t")).any(1).tolist() == [False, True, True]
    for name, entries in (("day", ["soon"] * 3), ("day", [1, 2, 3]), ("whole", ["a"] * 3), ("whole", [1, 2, np.inf])):
        with pytest.raises(LDLError, match=f"t: column '{name}' is"):
            encoding.transform(FRAME.assign(**{name: entries}), "t")
    FRAME.drop(columns="coded").assign(y=[0.5, 0.25, 1]).to_csv(tmp_path / "t.csv", index=False)
    data = TabularValues(str(tmp_path / "t.csv"), folds=3, val_fraction=0.0, step=0.25)
    data.setup()
    assert data.encoding is not None
    assert [c.kind for c in data.encoding.columns] == [
        "number",
        "number",
        "category",
        *["date"] * 4,
    ]


@pytest.mark.parametrize("zone", ["Z", "+01:00", " -0530", "+00"])
def test_a_time_zone_in_text_leaves_the_local_date(zone: str) -> None:
    texts = [f"2024-01-31T23:59:00.5{zone}", f"2023-12-24 00:01{zone}", None]
    frame = pd.DataFrame({"day": texts})
    encoding = Encoding.fit(typed(frame, "t"), True)
    assert encoding.columns[0].kind == "date"
    expected = np.array([*DATE.values(), [0, 0, 1]]).T
    np.testing.assert_array_equal(encoding.transform(frame, "t"), expected)


@pytest.mark.parametrize(
    ("texts", "what"),
    [
        (["31.01.2024", "1.2.2024", None], "dates; write them as 2024-05-31"),
        (["01/31/24", "02/01/24", "02/02/24"], "dates; write them"),
        (["2024/01/31", "2024/1/2", ""], "dates; write them"),
        (["1,5", "-2,75", "3,0"], "numbers with a comma; write them with a point"),
        (["1,200", "3,400", "?"], "numbers with a comma; write them with a point"),
    ],
)
def test_dates_and_numbers_of_other_programs_are_named(texts: list[Any], what: str) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "e": texts})
    with pytest.raises(LDLError, match=f"t: column 'e' is '.*, and its texts look like {what}") as error:
        typed(frame, "t", "--data.drop")
    assert "leave it out with --data.drop e, or make it a category with --data.category_columns e" in str(error.value)
    assert typed(frame.astype({"e": "category"}), "t")["e"].dtype == object
    mixed = frame.assign(e=[*texts[:2], "x"])
    assert typed(mixed, "t")["e"].dtype == object  # other text among them: a category


def test_objects_that_are_no_category_are_named() -> None:
    frame = pd.DataFrame({"e": pd.cut(pd.Series([1.0, 2.0, 3.0]), 2)})
    with pytest.raises(LDLError, match=r"t: column 'e' is Interval '.*', no category; convert it with .astype\(str\)"):
        typed(frame, "t")
    assert typed(frame.astype(str), "t")["e"].nunique() == 2
