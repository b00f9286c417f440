"""Predictions as Label Studio and Argilla import them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fakes.exports import LABEL_STUDIO

from ldl.annotations import read_export
from ldl.annotations.exports.suggestions import suggestions_of
from ldl.errors import LDLError

PREDICTIONS = "index,name,prediction:neg,prediction:pos\n0,b1,0.25,0.75\n1,a2,0.9,0.1\n"
UNNAMED = "index,prediction:neg,prediction:pos\n2,0.25,0.75\n0,0.9,0.1\n"
ITEMS = 'id,text,year\na2,"bad, film",2001\nb1,good film,1999\nc3,a film,1990\n'


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Predictions of a run that is named ``first``, and the table of its items."""
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "predictions.csv").write_text(PREDICTIONS)
    (tmp_path / "items.csv").write_text(ITEMS)
    return tmp_path / "first" / "predictions.csv", tmp_path / "items.csv"


def test_tasks_of_label_studio(files: tuple[Path, Path]) -> None:
    tasks = suggestions_of(*files, "label_studio", "sentiment")
    result = {"from_name": "sentiment", "to_name": "text", "type": "choices", "value": {"choices": ["pos"]}}
    assert tasks[0] == {
        "data": {"id": "b1", "text": "good film", "year": "1999"},
        "predictions": [{"model_version": "ldl first", "score": 0.75, "result": [result]}],
    }
    assert tasks[1]["data"]["text"] == "bad, film"
    assert tasks[1]["predictions"][0]["result"][0]["value"] == {"choices": ["neg"]}
    # Label Studio writes such a result for an annotation, in the layout that is read.
    written = LABEL_STUDIO[0]["annotations"][0]["result"][0]
    assert written.keys() == result.keys() and written["value"].keys() == result["value"].keys()


def test_records_of_argilla(files: tuple[Path, Path]) -> None:
    records = suggestions_of(*files, "argilla", "sentiment")
    assert records[1] == {
        "id": "a2",
        "fields": {"text": "bad, film"},
        "metadata": {},
        "suggestions": {"sentiment": {"value": "neg", "score": 0.9, "agent": "ldl first"}},
        "responses": {},
        "vectors": {},
    }
    records[0]["responses"] = {"sentiment": [{"value": "pos", "user_id": "u1"}]}
    exported = files[0].with_name("records.json")
    exported.write_text(json.dumps(records))
    assert read_export(exported).votes.to_numpy().tolist() == [["b1", "u1", "pos", "good film"]]


def test_rows_without_names_are_joined_by_their_numbers(files: tuple[Path, Path]) -> None:
    files[0].write_text(UNNAMED)
    texts = [task["data"]["text"] for task in suggestions_of(*files, "label_studio")]
    assert texts == ["a film", "bad, film"]


@pytest.mark.parametrize("names, field", [(("a.png", "b.jpg"), "image"), (("a film", "b film"), "text")])
def test_names_alone(names: tuple[str, str], field: str, files: tuple[Path, Path]) -> None:
    files[0].write_text(PREDICTIONS.replace("b1", names[0]).replace("a2", names[1]))
    tasks = suggestions_of(files[0], None, "label_studio")
    assert [task["data"] for task in tasks] == [{field: name} for name in names]
    assert tasks[0]["predictions"][0]["result"][0]["to_name"] == field


@pytest.mark.parametrize(
    "predictions, items, shown, message",
    [
        ("index,name\n0,a\n", ITEMS, None, "has no column prediction:LABEL; give the predictions.csv of a run"),
        (UNNAMED, None, None, "has no names of items; give the table that was predicted"),
        (PREDICTIONS, "id,text\nx,y\n", None, "has no column with the names of the items, such as 'b1'"),
        (UNNAMED, "id,text\nx,y\n", None, "has 1 rows, and"),
        (PREDICTIONS, ITEMS, "txt", "has no column 'txt'; did you mean 'text'?; name what annotators see"),
        (PREDICTIONS, ITEMS.replace("text", "body"), None, "has no column text or image; name what annotators see"),
    ],
)
def test_mistakes_are_one_line(
    predictions: str, items: str | None, shown: str | None, message: str, files: tuple[Path, Path]
) -> None:
    files[0].write_text(predictions)
    files[1].write_text(items or "")
    with pytest.raises(LDLError) as error:
        suggestions_of(files[0], files[1] if items else None, "label_studio", shown=shown)
    assert message in str(error.value) and "\n" not in str(error.value)
