"""The guide to the files of annotation tools runs as it is written, in a folder with made-up exports."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from fakes.comments import comments
from fakes.exports import EXPORTS, LABEL_STUDIO_CSV, LEWIDI_2023, PANOPTES, FakeExport
from fakes.paths import ROOT

from ldl.annotations import read_annotations
from ldl.annotations.exports import TOOLS
from ldl.command.audit import audit
from ldl.command.console import command
from ldl.command.votes import votes

PAGE = (ROOT / "docs" / "guides" / "exports.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
SHELL = [text.splitlines() for language, text in BLOCKS if not language]
JOURNEY = next(lines for lines in SHELL if any("-c text" in line for line in lines))
"""From votes to predictions."""
COMMANDS = [line for lines in SHELL if lines is not JOURNEY for line in lines]
NAMES = {
    "films.csv": "label_studio_csv",
    "films-min.json": "label_studio_min",
    "films.json": "label_studio",
    "prodigy.jsonl": "prodigy",
    "doccano.zip": "doccano",
    "argilla.json": "argilla",
    "classifications.csv": "zooniverse",
    "batch.csv": "mturk",
    "appen.csv": "appen",
    "assignments.tsv": "toloka",
    "qualtrics.csv": "qualtrics",
    "form.csv.zip": "google_forms",
    "train.json": "lewidi_2023",
}
"""Files of the guide, and the exports that they hold."""
OTHERS = {
    "question_reducer.csv": PANOPTES,
    "dev.json": {key: {**each, "split": "dev"} for key, each in LEWIDI_2023.items()},
    "other.json": [{"document": {"id": "d1"}, "labels": [{"user": "a", "label": "x"}]}],
    "survey.csv": "Name,Film A,Film B\nAnn,Good,Bad\n",
    "predictions.csv": "index,name,prediction:a,prediction:b\n0,7,0.4,0.6\n",
    "items.csv": "id,text\n7,good film\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all files of the guide."""
    named = {name: next(iter(EXPORTS[fake].files.values())) for name, fake in NAMES.items()}
    FakeExport({**named, **OTHERS}, [], "").write(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("line", list(dict.fromkeys(COMMANDS)))
def test_command_runs(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, subcommand, *words = shlex.split(line)
    {"votes": votes, "audit": audit}[subcommand](words)
    printed = capsys.readouterr().out
    out = Path(words[-1])
    if subcommand == "audit":
        assert "3 nominal labels" in printed
    elif out.suffix == ".json":
        assert len(json.loads(out.read_text())) == 1 and printed == f"1 suggestions: {out}\n"
    else:
        fake = EXPORTS.get(NAMES.get(words[0], ""))
        rows = len(out.read_text().splitlines()) - 1
        assert printed.endswith(f"{rows} rows: {out}\n")
        assert rows == len(fake.votes) or len(words) > 3 if fake else rows > 0
        assert len(read_annotations(out, multiple="count", duplicates="keep"))


@pytest.mark.slow
@pytest.mark.usefixtures("blank_charts")
def test_votes_of_a_tool_become_predictions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")
    monkeypatch.chdir(tmp_path)
    table, single = comments()
    table = table.rename(columns={"comment": "text"})
    exported = single.merge(table[["id", "text"]]).rename(columns={"rater": "annotator", "label": "sentiment"})
    exported.assign(annotation_id=range(len(exported)), lead_time=1.0).to_csv("films.csv", index=False)
    table[["text"]].head(3).to_csv("new.csv", index=False)
    for line in [COMMANDS[0], *JOURNEY]:
        words = shlex.split(line)[1:]
        command([*words, *(["--wandb.mode=disabled"] if words[0].startswith("-") else [])])
    (path,) = (path for path in Path("runs").glob("*/predictions.csv") if path.parent.name != "films")
    assert len(path.read_text().splitlines()) == 4


def test_the_example_is_what_the_command_prints(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    csv, text = ([block for language, block in BLOCKS if language == each] for each in ("csv", "text"))
    assert LABEL_STUDIO_CSV.startswith(csv[0])
    votes(shlex.split(COMMANDS[0])[2:])
    assert capsys.readouterr().out.split() == text[0].split()
    assert (folder / "votes.csv").read_text().splitlines()[:3] == csv[1].splitlines()


def test_each_tool_is_in_the_table() -> None:
    rows = {*re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE)}
    assert rows == {*TOOLS} - {"appen_aggregated"}
