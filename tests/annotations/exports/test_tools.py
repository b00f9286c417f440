"""Tools are recognised by their marks; wrong files and options end in one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from fakes import exports
from fakes.exports import EXPORTS, FakeExport

from ldl.annotations import read_export
from ldl.annotations.exports import TOOLS
from ldl.annotations.exports.tool_files import open_files
from ldl.annotations.exports.tools import find_tool
from ldl.errors import LDLError

OF_NAME = {
    "label_studio_csv": "label_studio_min",
    "prodigy_binary": "prodigy",
    "mturk_boolean": "mturk",
    "mturk_task_answers": "mturk",
    "lewidi_2023": "lewidi",
    "lewidi_2025": "lewidi",
}


@pytest.mark.parametrize("name", list(EXPORTS))
def test_one_tool_has_the_marks_of_a_file(name: str, tmp_path: Path) -> None:
    for file in open_files(EXPORTS[name].write(tmp_path)):
        assert [tool for tool, each in TOOLS.items() if each.wrote(file)] == [OF_NAME.get(name, name)]


@pytest.mark.parametrize(
    "header",
    [
        "id,text,label", "item,rater,label", "task,worker,label", "path,label:cat,label:dog", "subject_id,data,label",
        "instance_id,user_id,text,offensiveness", "annotator,id,label", "Timestamp,Email Address,Film A",
    ],
)  # fmt: skip
def test_tables_of_votes_have_the_marks_of_no_tool(header: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    assert [find_tool(file) for file in open_files([tmp_path / "a.csv"])] == [None]


NESTED = [
    {
        "document": {"doc_id": "d1", "body": "good"},
        "labels": [{"user": "a", "label": "pos", "seconds": 3}, {"user": "b", "label": "neg", "seconds": 4}],
    },
    {"document": {"doc_id": "d2", "body": "bad"}, "labels": [{"user": "a", "label": "neg", "seconds": 5}]},
]
SPANS = [{"id": 1, "text": "a", "label": [[0, 1, "PER"]]}]
TWO_QUESTIONS = exports.MTURK.replace('"Approve"', '"Answer.sure"').replace('"",""\n', '"yes",""\n')
UNEVEN = {"1": {**exports.LEWIDI_2023["1"], "annotators": "Ann1,Ann2"}}
ERRORS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "aggregated": ({"a.csv": exports.APPEN_AGGREGATED}, {}, "no distribution; download the full report"),
    "unknown JSON": (
        {"a.json": NESTED},
        {},
        "a.json is JSON of no known tool; name the paths with item_column, rater_column and vote_column. By their "
        "names, these may be items 'document.doc_id'; raters 'labels[].user'; labels 'labels[].label'",
    ),
    "unknown path": (
        {"a.json": NESTED},
        {"item_column": "document.doc_id", "vote_column": "labels[].lable"},
        "has no path 'labels[].lable'; did you mean 'labels[].label'?; it has 'document.doc_id'",
    ),
    "two questions": (
        {"a.csv": TWO_QUESTIONS},
        {},
        "may have several questions, 'Answer.label', 'Answer.sure'; name one",
    ),
    "two tasks": ({"a.csv": exports.PANOPTES}, {}, "may have several questions, 'T0', 'T1'; name one with vote_column"),
    "unknown question": (
        {"a.csv": exports.MTURK},
        {"vote_column": "lable"},
        "has no question 'lable'; it has 'Answer.label'; correct vote_column",
    ),
    "unknown item": (
        {"a.json": exports.LABEL_STUDIO},
        {"item_column": "txt"},
        "has no column 'txt'; did you mean 'text'? for the item; pass one of 'text', 'year' as item_column",
    ),
    "several inputs": (
        {"a.tsv": exports.TOLOKA.replace("HINT:text", "INPUT:page").replace("\t\t\thttps", "\t\t1\thttps")},
        {},
        "several columns may name the item, 'url', 'page'; name one with item_column",
    ),
    "nothing to keep": (
        {"a.csv": exports.MTURK},
        {"keep": ["gold"]},
        "has no votes that are 'gold', so keep has no use for it; it has 'rejected'",
    ),
    "unknown version": (
        {"a.csv": exports.ZOONIVERSE},
        {"workflow_version": "11"},
        "has no workflow_version '11'; it has '9.2', '10.1', or pass latest or all",
    ),
    "no votes": (
        {"a.json": {"1": {"annotations": {"Ann1": ""}, "annotators": "Ann1"}}},
        {},
        "no vote is left; 1 without",
    ),
    "uneven": ({"a.json": UNEVEN}, {}, "item '1' has 3 annotations and 2 annotators; correct it"),
    "spans": ({"a.jsonl": SPANS}, {}, "label holds spans or boxes, which are no votes on an item"),
    "prodigy spans": (
        {"a.jsonl": [{"text": "a", "_input_hash": 1, "spans": [], "answer": "accept"}]},
        {},
        "spans and texts are no votes",
    ),
    "two tools": (
        {"a.csv": exports.MTURK, "b.csv": exports.APPEN},
        {},
        "the files are of several tools",
    ),
    "a tool of tables": ({"a.csv": exports.MTURK}, {"tool": "mtruk"}, "unknown tool 'mtruk'; one of label_studio"),
    "another tool": ({"a.csv": exports.MTURK}, {"tool": "appen"}, "has not what Appen, full report writes, '_unit_id'"),
    "drawn": (
        {"a.csv": exports.ZOONIVERSE_HEADER + exports.zooniverse_row(1, "a", "1.1", [exports.DRAWN], 5)},
        {},
        "has no question that somebody answered",
    ),
    "damaged cell": (
        {"a.csv": exports.ZOONIVERSE.replace('[{""task""', '{""task""', 1)},
        {},
        "row 0: the annotations are no JSON",
    ),
    "no counts": (
        {"a.csv": "subject_id,workflow_id,task,reducer,data.text\n1,2,T0,text_reducer,hello\n"},
        {},
        "data.text holds 'hello' and no counts of votes",
    ),
    "no items": (
        {"a.csv": "Timestamp,Film [A]\n1,2\n"},
        {"vote_column": "Movie"},
        "has no question 'Movie'; it has 'Film'",
    ),
    "no rater": (
        {"a.csv": exports.GOOGLE_FORMS},
        {"rater_column": "Name"},
        "has no column 'Name'; correct rater_column",
    ),
    "no vote column": ({"a.csv": "id,worker,score\n1,2,3\n"}, {}, "has no vote column; name it with vote_column"),
    "empty zip": ({"a.zip": {"a.txt": "x"}}, {}, "holds no .csv, .tsv, .json or .jsonl file"),
    "no zip": ({"a.csv": "x"}, {"renamed": "a.zip"}, "cannot be read as a ZIP archive"),
    "no JSON": ({"a.json": "{'a': 1}"}, {}, "a.json is no JSON: "),
    "no line": ({"a.jsonl": '{"id": 1}\n{"id": 2\n'}, {}, "a.jsonl: line 2 is no JSON: "),
    "no objects": ({"a.json": [1, 2]}, {}, "holds no list of objects in JSON"),
    "other kind": ({"a.txt": "x"}, {}, "unknown kind of file; give a .csv, .tsv, .json, .jsonl or Parquet file"),
    "absent": ({}, {"renamed": "b.json"}, "no file at "),
}


@pytest.mark.parametrize("case", list(ERRORS))
def test_mistakes_are_one_line(case: str, tmp_path: Path) -> None:
    files, options, message = ERRORS[case]
    paths, options = FakeExport(files, [], "").write(tmp_path), dict(options)
    if name := options.pop("renamed", None):
        paths = [path.rename(tmp_path / name) for path in paths] or [tmp_path / name]
    with pytest.raises(LDLError) as error:
        read_export(paths, **options)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_paths_of_unknown_json(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(NESTED))
    options = {"item_column": "document.doc_id", "rater_column": "labels[].user", "vote_column": "labels[].label"}
    export = read_export(tmp_path / "a.json", **options)
    expected = [["d1", "a", "pos", "good"], ["d1", "b", "neg", "good"], ["d2", "a", "neg", "bad"]]
    assert export.votes.to_numpy().tolist() == expected
    assert list(export.votes) == ["item", "rater", "label", "document.body"]
    assert export.notes[1].endswith("'labels[].seconds' differ between votes on an item and are left out")


def test_no_tool_reads_a_table_by_its_usual_names(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("task,worker,label,text\n1,w1,cat,x\n1,w2,,x\n2,w1,dog,y\n")
    export = read_export(tmp_path / "a.csv")
    assert export.votes.to_numpy().tolist() == [["1", "w1", "cat", "x"], ["2", "w1", "dog", "y"]]
    assert "no known tool: question 'label', item task, rater worker; 2 votes by 1 raters on 2 items" in export.notes[0]
    paths = EXPORTS["mturk"].write(tmp_path)
    votes = read_export(paths, "none", item_column="HITId", vote_column="Answer.label", rater_column="WorkerId").votes
    assert list(votes["label"]) == ["cat", "dog", "dog", "cat|dog"]


def test_several_files_of_a_tool_are_one_export(tmp_path: Path) -> None:
    first = EXPORTS["mturk"].write(tmp_path / "a")
    (tmp_path / "b.csv").write_text(exports.MTURK.replace("H1", "H9").replace("W1", "W9"))
    assert len(read_export([*first, tmp_path / "b.csv"]).votes) == 2 * len(EXPORTS["mturk"].votes)
    for name, text in {"alice.jsonl": "positive", "bob.jsonl": "negative"}.items():
        (tmp_path / name).write_text(json.dumps({"id": 1, "text": "a", "label": [text]}))
    votes = read_export([tmp_path / "alice.jsonl", tmp_path / "bob.jsonl"]).votes
    assert votes.to_numpy().tolist() == [["1", "alice", "positive", "a"], ["1", "bob", "negative", "a"]]
    (tmp_path / "all.jsonl").write_text((tmp_path / "bob.jsonl").read_text())
    assert list(read_export(tmp_path / "all.jsonl").votes) == ["item", "label", "text"]


def test_splits_that_share_keys_name_different_items(tmp_path: Path) -> None:
    paths = FakeExport(
        {
            "train.json": exports.LEWIDI_2023,
            "test.json": {key: {**each, "split": "test"} for key, each in exports.LEWIDI_2023.items()},
            "annotators.json": {"Ann1": {"age": "40"}},
        },
        [],
        "",
    ).write(tmp_path)
    export = read_export(paths)
    assert sorted(set(export.votes["item"])) == ["test-1", "test-2", "train-1", "train-2"]
    assert "annotators.json holds no annotations and is left out" in export.notes[1]
    assert export.notes[2].endswith("the files share keys, so an item is the split and the key, such as train-1")


@pytest.mark.parametrize("version, raters", [("all", 5), ("9.2", 1), ("latest", 4)])
def test_versions_of_a_workflow(version: str, raters: int, tmp_path: Path) -> None:
    export = read_export(EXPORTS["zooniverse"].write(tmp_path), workflow_version=version)
    assert len(export.votes) == raters
    noted = any("of the versions '9.2', '10.1' of the workflow" in note for note in export.notes)
    assert noted == (version != "all")


def test_workflows_have_tasks_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        exports.ZOONIVERSE + exports.zooniverse_row(10, "x", "1.1", [exports.task("A")], 7).replace(",88,", ",89,")
    )
    with pytest.raises(LDLError, match=r"several questions, '88.T0', '89.T0'; name one with vote_column"):
        read_export(tmp_path / "a.csv")
    assert read_export(tmp_path / "a.csv", vote_column="89.T0").votes["label"].tolist() == ["A"]


def test_columns_of_questions_by_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Timestamp,Name,Film A,Film B\n1,Ann,Good,Bad\n2,Bob,,Good\n")
    votes = read_export(tmp_path / "a.csv", "google_forms", rater_column="Name", vote_column="Film *").votes
    assert votes.to_numpy().tolist() == [["Film A", "Ann", "Good"], ["Film B", "Ann", "Bad"], ["Film B", "Bob", "Good"]]


def test_answers_that_never_differ_are_found_by_their_entries(tmp_path: Path) -> None:
    rows = [f'{n},r{n % 2},2026,{n // 2},1.0,"yes","text {n // 2}"' for n in range(8)]
    (tmp_path / "a.csv").write_text("annotation_id,annotator,created_at,id,lead_time,answer,text\n" + "\n".join(rows))
    export = read_export(tmp_path / "a.csv")
    assert set(export.votes["label"]) == {"yes"} and "question 'answer'" in export.notes[0]


def test_answers_differ_within_items_and_data_and_regions_do_not(tmp_path: Path) -> None:
    boxes = '"[{""x"": 1, ""label"": [""a""]}]"'
    rows = [f"{n},r{n % 2},2026,{n // 2},1.0,{'yes' if n % 3 else 'no'},film {n % 4 // 2},{boxes}" for n in range(8)]
    header = "annotation_id,annotator,created_at,id,lead_time,answer,genre,box"
    (tmp_path / "a.csv").write_text("\n".join([header, *rows]))
    export = read_export(tmp_path / "a.csv")
    assert "question 'answer'" in export.notes[0] and set(export.votes["label"]) == {"yes", "no"}
    assert set(export.votes["genre"]) == {"film 0", "film 1"}


def test_item_of_another_column(tmp_path: Path) -> None:
    votes = read_export(EXPORTS["label_studio"].write(tmp_path), item_column="text").votes
    assert set(votes["item"]) == {"good film"}
    votes = read_export(EXPORTS["zooniverse"].write(tmp_path), item_column="Filename", rater_column="rater").votes
    assert set(votes["item"]) == {"501.png", "502.png"}


def test_columns_named_as_those_of_votes_are_left_out(tmp_path: Path) -> None:
    tasks = [{**task, "data": {"label": "gold", "item": "x"}} for task in exports.LABEL_STUDIO]
    (tmp_path / "a.json").write_text(json.dumps(tasks))
    export = read_export(tmp_path / "a.json")
    assert list(export.votes) == ["item", "rater", "label"] and set(export.votes["label"]) == {"Positive", "Negative"}
    assert export.notes[1].endswith("'label', 'item' have the names of columns of votes and are left out")


def test_images_in_base64_are_left_out(tmp_path: Path) -> None:
    records = [{**each, "image": "data:image/png;base64,iVBORw0K"} for each in exports.PRODIGY]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, records)))
    export = read_export(tmp_path / "a.jsonl")
    assert list(export.votes) == ["item", "rater", "label", "text"]
    assert export.notes[1].endswith("'image' hold files in base64 and are left out")


def test_items_and_classifications_without_the_question_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([*exports.LABEL_STUDIO, {"id": 9, "data": {}, "annotations": []}]))
    assert read_export(tmp_path / "a.json").notes[1].endswith("1 items have no annotation and are left out")
    notes = read_export(EXPORTS["argilla"].write(tmp_path), vote_column="topics").notes
    assert notes[1].endswith("1 items have no annotation and are left out")
    rows = exports.zooniverse_row(10, "x", "10.1", [exports.task("far", "T2")], 502)
    (tmp_path / "a.csv").write_text(exports.ZOONIVERSE + rows)
    export = read_export(tmp_path / "a.csv", vote_column="T0")
    assert len(export.votes) == 4 and any("1 classifications have no task T0" in note for note in export.notes)


@pytest.mark.parametrize("record", [{"id": 1, "label": "a"}, {"id": 1, "annotator": "x", "label": ["a"]}])
def test_labels_of_another_tool_are_not_those_of_doccano(record: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "alice.jsonl").write_text(json.dumps(record))
    with pytest.raises(LDLError, match="is JSON of no known tool; name the paths with item_column"):
        read_export(tmp_path / "alice.jsonl")


def test_parquet_of_a_tool(tmp_path: Path) -> None:
    path = EXPORTS["mturk"].write(tmp_path)[0]
    pd.read_csv(path, dtype=str, keep_default_na=False).to_parquet(tmp_path / "a.parquet")
    assert read_export(tmp_path / "a.parquet").votes.equals(read_export(path).votes)
