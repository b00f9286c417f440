"""Votes from made-up exports of each tool, counted by hand; the same votes directly and through a file."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes.exports import EXPORTS, PANOPTES, FakeExport

from ldl.annotations import Annotations, read_annotations, read_export

NAMES = list(EXPORTS)


@pytest.mark.parametrize("name", NAMES)
def test_votes_are_those_counted_by_hand(name: str, tmp_path: Path) -> None:
    fake = EXPORTS[name]
    export = read_export(fake.write(tmp_path), **fake.options)
    votes = export.votes
    assert sorted(zip(votes["item"], votes["rater"], votes["label"])) == sorted(fake.votes)
    assert export.notes[0].endswith(fake.left_out) or f"; {fake.left_out};" in export.notes[0], export.notes
    assert f"; {len(fake.votes)} votes by " in export.notes[0]
    first = votes[votes["item"] == fake.votes[0][0]].iloc[0]
    columns = {column: first[column] for column in votes.columns[3:] if first[column]}
    assert columns == fake.columns


@pytest.mark.parametrize("name", NAMES)
def test_direct_reading_equals_the_file_of_votes(name: str, tmp_path: Path) -> None:
    fake = EXPORTS[name]
    paths = fake.write(tmp_path)
    file = tmp_path / "votes.csv"
    read_export(paths, **fake.options).votes.to_csv(file, index=False)
    options: dict[str, Any] = {"multiple": "count", "duplicates": "keep"}
    direct, converted = read(paths[0], **options, **fake.options), read(file, **options)
    check_equal(direct, converted)
    assert direct.votes.sum() == sum(1 + vote[2].count('", "') for vote in fake.votes)
    assert direct.notes[0] == read_export(paths, **fake.options).notes[0]


def read(source: Path, **options: Any) -> Annotations:
    """The annotations without the warnings, which are the notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return read_annotations(source, **options)


def check_equal(first: Annotations, second: Annotations) -> None:
    """Two annotations have the same items, labels, counts, raters and layout."""
    assert list(first.items) == list(second.items) and first.labels == second.labels
    np.testing.assert_array_equal(first.counts, second.counts)
    assert first.layout == second.layout and (first.raters is None) == (second.raters is None)
    assert first.raters is None or list(first.raters) == list(second.raters)


def counts_of(votes: Annotations) -> dict[str, list[float]]:
    """The votes of each item."""
    return {str(item): row.tolist() for item, row in zip(votes.items, votes.counts)}


def test_reductions_are_counts(tmp_path: Path) -> None:
    paths = FakeExport({"question_reducer.csv": PANOPTES}, [], "").write(tmp_path)
    export = read_export(paths, vote_column="T0")
    assert export.votes.to_csv(index=False).split() == ["item,label:no,label:yes", "1,1,3", "2,2,"]
    assert export.notes[0].endswith(
        "question 'T0', item subject_id, rater unknown; 6 votes on 2 items are taken; nothing is left out"
    )
    assert export.notes[1].endswith("2 classifications without an answer, data.None, are left out")
    file = tmp_path / "votes.csv"
    export.votes.to_csv(file, index=False)
    direct = read(paths[0], vote_column="T0")
    assert counts_of(direct) == counts_of(read(file)) == {"1": [1, 3], "2": [2, 0]}
    assert direct.layout == "long" and direct.raters is None  # the option names the column of the votes
    first = PANOPTES.replace("T1", "T0").splitlines()
    paths[0].write_text("\n".join(line for line in first if ",2.0,,,," not in line and ",1.0,,,," not in line))
    check_equal(read(paths[0]), read(file))
    assert read(paths[0]).layout == "counts"


@pytest.mark.parametrize(
    "name, keep, votes",
    [
        ("mturk", ["rejected"], [("https://x.org/1.jpg", "W2", "dog")]),
        ("appen", ["gold"], [("571", "33", "negative")]),
        ("appen", ["gold", "tainted"], [("571", "33", "negative"), ("570", "32", "negative")]),
        ("label_studio", ["draft"], [("4", "c@x.org", "Neutral")]),
        ("zooniverse", ["gold"], [("502", "expert", "Star")]),
        ("qualtrics", ["unfinished"], [("Q1_1", "R_4", "2")]),
    ],
)
def test_kept_reasons_count(name: str, keep: list[str], votes: list[tuple[str, ...]], tmp_path: Path) -> None:
    fake = EXPORTS[name]
    table = read_export(fake.write(tmp_path), keep=keep).votes
    assert sorted(zip(table["item"], table["rater"], table["label"])) == sorted([*fake.votes, *votes])
