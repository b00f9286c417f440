"""Exports in place of a table of votes: in ``read_annotations``, in ``ldl audit``, and beside a table of features."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fakes import exports
from fakes.exports import EXPORTS, FakeExport

from ldl.annotations import Annotations, read_annotations
from ldl.annotations.columns import VoteOptions
from ldl.annotations.exports.direct import is_export, open_export
from ldl.command.console import command
from ldl.data import TabularLDL
from ldl.errors import LDLError

MULTIPLE: dict[str, Any] = {"multiple": "count"}


def read(source: Path, **options: Any) -> Annotations:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return read_annotations(source, **options)


def counts(votes: Annotations) -> dict[str, dict[str, float]]:
    """The votes of each item by label."""
    return {str(item): dict(zip(votes.labels.names, row.tolist())) for item, row in zip(votes.items, votes.counts)}


def test_several_labels_follow_the_option_multiple(tmp_path: Path) -> None:
    path = EXPORTS["label_studio_csv"].write(tmp_path)[0]
    with pytest.raises(LDLError, match=r"films.csv \(votes\): 1 votes hold several labels.*pass multiple count"):
        read(path)
    assert counts(read(path, **MULTIPLE)) == {
        "4": {"Negative": 1, "Neutral": 1, "Positive": 1},
        "5": {"Negative": 1, "Neutral": 0, "Positive": 0},
    }


def test_options_name_columns_of_the_tool_or_of_the_long_layout(tmp_path: Path) -> None:
    path = EXPORTS["mturk"].write(tmp_path)[0]
    options = {"duplicates": "first", **MULTIPLE}
    by_tool = read(path, item_column="HITId", vote_column="Answer.label", rater_column="WorkerId", **options)
    assert list(by_tool.items) == ["H1", "H3"]
    by_layout = read(path, item_column="item", vote_column="label", rater_column="rater", **options)
    assert list(by_layout.items) == ["https://x.org/1.jpg"] and by_layout.raters is not None
    assert read(path, group_column="image_url", **options).groups is not None


def test_a_table_that_options_describe_is_no_export(tmp_path: Path) -> None:
    path = EXPORTS["google_forms"].write(tmp_path)[0]
    assert is_export(path, VoteOptions())
    form = FakeExport({"form.csv": exports.GOOGLE_FORMS}, [], "").write(tmp_path)[0]
    assert is_export(form, VoteOptions()) and not is_export(form, VoteOptions(rater_columns=["Rate the film *"]))
    assert open_export(form, VoteOptions(rater_columns=["Rate the film *"])) is None
    (tmp_path / "votes.csv").write_text("item,rater,label\n1,a,x\n")
    assert open_export(tmp_path / "votes.csv") is None and open_export(tmp_path / "absent.npz") is None


def test_the_audit_reads_an_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = EXPORTS["zooniverse"].write(tmp_path)[0]
    command(["audit", str(path), "--multiple", "count"])
    printed = capsys.readouterr().out
    assert "items       long layout, 2 items, 3 nominal labels, 2 to 3 votes an item, 3 raters\n" in printed
    assert f"note        {path}: read as Zooniverse classifications, which ldl votes --tool decides: " in printed
    command(["audit", str(FakeExport({"a.csv": exports.PANOPTES}, [], "").write(tmp_path)[0]), "--vote_column", "T0"])
    assert "long layout, 2 items, 2 nominal labels, 2 to 4 votes an item, raters unknown\n" in capsys.readouterr().out


def test_counts_of_a_question_beside_features(tmp_path: Path) -> None:
    (tmp_path / "features.csv").write_text("\n".join(["item,width", *(f"{item},{item}.5" for item in range(12))]))
    rows = [f"{item},7,{task},r,{item % 3},{1 + item % 2}" for item in range(12) for task in ("T0", "T1")]
    (tmp_path / "votes.csv").write_text("\n".join(["subject_id,workflow_id,task,reducer,data.no,data.yes", *rows]))
    data = TabularLDL(path=str(tmp_path / "features.csv"), votes=str(tmp_path / "votes.csv"), vote_column="T1", folds=3)
    data.setup()
    assert data.annotations is not None
    assert data.annotations.counts.tolist() == [[item % 3, 1 + item % 2] for item in range(12)]


def test_json_beside_features(tmp_path: Path) -> None:
    (tmp_path / "features.csv").write_text("\n".join(["id,width", *(f"{item},{item}.5" for item in range(9))]))
    labels = [["Positive", "Negative"][item % 2] for item in range(9)]
    tasks = [
        {"id": item, "data": {}, "annotations": [{"completed_by": rater, "result": exports.choice(label)}]}
        for rater in (1, 2)
        for item, label in enumerate(labels)
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    data = TabularLDL(path=str(tmp_path / "features.csv"), votes=str(tmp_path / "tasks.json"), folds=3)
    data.setup()
    assert data.annotations is not None and data.annotations.votes.tolist() == [2] * 9
    assert data.annotations.labels.names == ("Negative", "Positive")


@pytest.mark.parametrize("options", [{}, {"votes_item_column": "url"}])
def test_an_export_beside_features(options: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    rows = [f"https://x.org/{number},{rng.normal():.3f}" for number in range(12)]
    (tmp_path / "features.csv").write_text("\n".join(["item,width", *rows]))
    header = exports.TOLOKA.splitlines()[0].replace("OUTPUT:remark", "OUTPUT:size")
    lines = [
        f"https://x.org/{item}\t{rng.choice(['a', 'b'])}\t{rng.integers(3)}\t\t\t\tx\tw{rater}\tAPPROVED\t"
        for item in range(12)
        for rater in range(3)
    ]
    (tmp_path / "votes.tsv").write_text("\n".join([header, *lines]))
    places = {"path": str(tmp_path / "features.csv"), "votes": str(tmp_path / "votes.tsv"), "folds": 3}
    data = TabularLDL(**places, vote_column="code", item_column="item", **options)
    data.setup()
    assert data.size == 12 and data.annotations is not None and set(data.annotations.labels.names) == {"a", "b"}
    assert data.annotations.votes.tolist() == [3] * 12
    asked = f"question 'OUTPUT:code', item {options.get('votes_item_column', 'INPUT:url')}, rater ASSIGNMENT:worker_id"
    assert f"{asked}; 36 votes by 3 raters on 12 items are taken; nothing is left out" in capsys.readouterr().out
    with pytest.raises(LDLError, match="may have several questions, 'OUTPUT:code', 'OUTPUT:size'"):
        TabularLDL(**places).setup()
