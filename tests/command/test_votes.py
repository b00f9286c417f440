"""``ldl votes``: exports of tools as a file of votes, and predictions as suggestions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.exports import EXPORTS, PANOPTES, FakeExport

from ldl.annotations import read_annotations, read_export
from ldl.command.votes import votes
from ldl.errors import LDLError


def test_an_export_becomes_a_file_of_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, out = EXPORTS["doccano"].write(tmp_path), tmp_path / "votes.csv"
    votes([str(paths[0]), "--out", str(out)])
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == (
        f"{paths[0]}:export/alice.jsonl and 1 more: read as doccano, which ldl votes --tool decides: question 'label', "
        "item id, rater by the name of the file; 3 votes by 2 raters on 2 items are taken; 1 without an answer are "
        "left out"
    )
    assert printed[1] == f"3 rows: {out}"
    lines = ["item,rater,label,text", "1,alice,positive,Great price.", "2,alice,negative,Late.", "2,bob,negative,Late."]
    assert out.read_text().splitlines() == lines
    assert read_annotations(out).counts.tolist() == [[0, 1], [2, 0]]
    votes([str(paths[0]), "--out", str(out)])  # a file of votes is replaced


def test_options(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = str(EXPORTS["mturk"].write(tmp_path)[0]), tmp_path / "votes.csv"
    votes([path, "--item_column", "HITId", "--keep", "rejected", "--out", str(out), "--tool", "mturk"])
    assert out.read_text().splitlines()[:3] == [
        "item,rater,label,image_url",
        "H1,W1,cat,https://x.org/1.jpg",
        "H1,W2,dog,https://x.org/1.jpg",
    ]
    path = str(FakeExport({"a.csv": PANOPTES}, [], "").write(tmp_path)[0])
    votes([path, "--vote_column", "T0", "--out", str(out)])
    assert out.read_text().splitlines() == ["item,label:no,label:yes", "1,1,3", "2,2,"]
    capsys.readouterr()
    votes([path, "--vote_column", "T1"])
    assert capsys.readouterr().out.count("\n") == 1  # no file is written


def test_another_file_is_not_replaced(tmp_path: Path) -> None:
    path = EXPORTS["mturk"].write(tmp_path)[0]
    before = path.read_text()
    with pytest.raises(LDLError, match="exists, and this command did not write it"):
        votes([str(path), "--out", str(path)])
    assert path.read_text() == before


def test_suggestions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    predictions, out = tmp_path / "predictions.csv", tmp_path / "tasks.json"
    predictions.write_text("index,name,prediction:a,prediction:b\n0,x.png,0.4,0.6\n")
    for _ in range(2):
        votes(["--suggest", "label_studio", str(predictions), "--vote_column", "kind", "--out", str(out)])
    task = json.loads(out.read_text())[0]
    assert task["data"] == {"image": "x.png"} and task["predictions"][0]["result"][0]["from_name"] == "kind"
    assert capsys.readouterr().out == 2 * f"1 suggestions: {out}\n"
    records = tmp_path / "records.json"
    votes(["--suggest", "argilla", str(predictions), "--out", str(records)])
    assert json.loads(records.read_text())[0]["suggestions"]["label"]["value"] == "b"
    with pytest.raises(
        LDLError, match="--suggest takes a predictions.csv, the table of the items if need be, and --out"
    ):
        votes(["--suggest", "argilla", str(predictions)])


@pytest.mark.parametrize(
    "options, message",
    [
        (
            ["--suggest", "argilla", "--tool", "mturk"],
            "--suggest reads no export and has no use for --tool; leave it out",
        ),
        (["--next", "5", "--keep", "gold"], "--next reads votes with the options of the run; leave --keep out"),
        (
            ["--next", "5", "--suggest", "argilla"],
            "--next reads votes with the options of the run; leave --suggest out",
        ),
    ],
)
def test_options_of_exports_alone(options: list[str], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        votes(["votes.csv", *options, "--out", "a.csv"])


def test_all_votes_are_written(tmp_path: Path) -> None:
    for name, fake in EXPORTS.items():
        paths, out = fake.write(tmp_path / name), tmp_path / name / "votes.csv"
        question = fake.options.get("vote_column")
        votes([*map(str, paths), "--out", str(out), *(["--vote_column", question] if question else [])])
        table = read_export(out, "none").votes
        assert sorted(zip(table["item"], table["rater"], table["label"])) == sorted(fake.votes)
