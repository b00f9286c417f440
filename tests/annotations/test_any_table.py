"""Annotations of any layout, kind of label and source are read as they were generated."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ldl.annotations import read_annotations
from ldl.errors import LDLError

LABELS: dict[str, tuple[list[Any], list[float] | None]] = {
    "words": (["cat", "dog", "a b", "Über"], None),
    "integers": ([1, 2, 3, 10], [1, 2, 3, 10]),
    "negative": ([-1, 0, 1, 2], [-1, 0, 1, 2]),
    "floats": ([0.5, 1.0, 1.25, 2.0], [0.5, 1, 1.25, 2]),
    "prefixed": (["star-1", "star-2", "star-3", "star-10"], [1, 2, 3, 10]),
    "codes": ([0, 1, 2, 10], None),
    "long codes": ([1234567, 1234568, 1234569, 7], None),
    "ordered": (["low", "mid", "high", "top"], [0, 1, 2, 3]),
    "ordered numbers": ([2, 3, 5, 8], [2, 3, 5, 8]),
}
"""Labels as they are in a table, and their values; None for nominal labels."""
SOURCES = [".csv", ".tsv", ".csv.gz", ".parquet", "frame", "text frame", "categorical frame"]


@dataclass
class Drawn:
    """Votes (item, rater, label) that a table holds, and how it holds them."""

    kind: str
    layout: str
    source: str
    votes: list[tuple[Any, Any, int]]
    empty: list[Any]
    groups: dict[Any, str]
    duplicates: str
    with_raters: bool
    seed: int


@st.composite
def drawn(draw: st.DrawFn) -> Drawn:
    layout = draw(st.sampled_from(["long", "matrix", "counts"]))
    items = draw(st.sampled_from([[f"i{number}.png" for number in range(6)], [3, 14, 15, 92, 1234567, 1234568]]))
    items = items[: draw(st.integers(1, 6))]
    raters = draw(st.sampled_from([["w1", "w2", "w3"], [11, 22, 33]]))
    duplicates = draw(st.sampled_from(["error", "error", "first", "last", "keep"])) if layout == "long" else "error"
    with_raters = layout != "long" or duplicates != "error" or draw(st.booleans())
    votes = []
    for item in items[:-1] if len(items) > 1 else items:
        for rater in raters[: draw(st.integers(1, 3))]:
            for _ in range(1 if duplicates == "error" else draw(st.integers(1, 2))):
                votes.append((item, rater, draw(st.integers(0, 3))))
    given_items = {item for item, _, _ in votes}
    groups = {item: f"p{number % 2}" for number, item in enumerate(items)}
    return Drawn(
        draw(st.sampled_from(list(LABELS))), layout, draw(st.sampled_from(SOURCES)), votes,
        [item for item in items if item not in given_items], groups, duplicates, with_raters, draw(st.integers(0, 99)),
    )  # fmt: skip


def table_of(case: Drawn) -> pd.DataFrame:
    """Return the votes as a table."""
    labels, _ = LABELS[case.kind]
    if case.layout == "long":
        rows = [(item, rater, labels[label]) for item, rater, label in case.votes]
        rows += [(item, case.votes[0][1], None) for item in case.empty]
        table = pd.DataFrame(rows, columns=["item", "rater", "label"])
        order = np.random.default_rng(case.seed).permutation(len(table))
        if case.duplicates in ("first", "last"):
            order = np.arange(len(table))
        table = table.iloc[order] if case.with_raters else table.iloc[order].drop(columns="rater")
    elif case.layout == "matrix":
        cells = {(item, rater): labels[label] for item, rater, label in case.votes}
        raters = sorted({rater for _, rater, _ in case.votes}, key=str)
        rows = [[item, *(cells.get((item, rater)) for rater in raters)] for item in case.groups]
        table = pd.DataFrame(rows, columns=["item", *(f"by {rater}" for rater in raters)])
        table = table.sample(frac=1, random_state=case.seed)
    else:
        counts = Counter((item, label) for item, _, label in case.votes)
        rows = [[item, *(counts[item, label] for label in range(4))] for item in case.groups]
        table = pd.DataFrame(rows, columns=["item", *(f"label:{label}" for label in labels)])
        table = table.sample(frac=1, random_state=case.seed)
    return table.assign(patient=[case.groups[item] for item in table["item"]]).reset_index(drop=True)


def source_of(case: Drawn, table: pd.DataFrame, folder: Path) -> Any:
    cells = [name for name in table if name == "label" or str(name).startswith("by ")]
    if case.source == "text frame":
        return table.map(lambda cell: f" {cell}" if isinstance(cell, str | int | float) and cell == cell else "")
    if case.source == "categorical frame":
        ordered = case.kind.startswith("ordered")
        kind = pd.CategoricalDtype(LABELS[case.kind][0], ordered=ordered)
        return table.assign(**{name: table[name].astype(kind) for name in cells})
    if case.source == "frame":
        return table
    path = folder / f"votes{case.source}"
    if case.source == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, sep="\t" if case.source == ".tsv" else ",")
    return path


def expected(case: Drawn) -> list[tuple[Any, Any, int]]:
    """Return the votes that count."""
    if case.duplicates not in ("first", "last"):
        return case.votes
    votes = case.votes if case.duplicates == "last" else case.votes[::-1]
    return [(item, rater, label) for (item, rater), label in {vote[:2]: vote[2] for vote in votes}.items()]


@pytest.mark.filterwarnings("ignore::UserWarning")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=drawn())
def test_what_was_generated_is_read(case: Drawn, tmp_path: Path) -> None:
    labels, values = LABELS[case.kind]
    options: dict[str, Any] = {"rater_columns": "by *"} if case.layout == "matrix" else {}
    if case.kind.startswith("ordered") and not (case.source == "categorical frame" and case.layout != "counts"):
        options["order"] = labels
    if case.kind.endswith("codes"):
        options["label_type"] = "nominal"
    source = source_of(case, table_of(case), tmp_path)
    try:
        found = read_annotations(source, duplicates=case.duplicates, group_column="patient", **options)
    except LDLError as error:
        assume("like a second header" not in str(error))  # no later row has the answers of the first
        raise
    votes = expected(case)
    if case.kind == "prefixed" and case.layout != "counts":
        assume(len({label for _, _, label in votes}) > 1)  # the name of an only label has no prefix

    value_of = {str(label): value for label, value in zip(labels, values or [])}
    names = found.labels.names if values is None else [str(value) for value in found.labels.axes[0]]
    read = {str(item): dict(zip(names, row)) for item, row in zip(found.items, found.counts)}
    written = {str(item): Counter() for item, _, _ in votes}
    for item, _, label in votes:
        text = str(labels[label])
        written[str(item)][text if values is None else str(float(value_of[text]))] += 1
    assert {item: {k: v for k, v in row.items() if v} for item, row in read.items()} == written

    assert found.labels.kind == ("nominal" if values is None else "ordinal") and found.layout == case.layout
    assert dict(zip(map(str, found.items), found.groups)) == {str(item): case.groups[item] for item, _, _ in votes}
    assert found.left_out == len(case.empty) and found.counted
    if "order" in options or case.kind.startswith("ordered"):
        assert found.labels.axes == (tuple(map(float, values)),)
    if case.layout == "counts" or not case.with_raters:
        assert found.raters is None
    else:
        raters = Counter(str(rater) for _, rater, _ in votes)
        assert Counter(str(rater).removeprefix("by ") for rater in found.raters) == raters
    joined, rows = found.join(list(case.groups), "the table")
    assert [str(list(case.groups)[row]) for row in rows] == list(map(str, joined.items))
    assert joined.counts.sum() == found.counts.sum() == len(votes)
