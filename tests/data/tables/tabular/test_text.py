"""Tables with columns of text, from their reading to predictions."""

from __future__ import annotations

import json
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes.comments import comments, save

pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")

from ldl.command import main
from ldl.command.console import command
from ldl.data import TabularLDL, TabularValues
from ldl.data.text import TextOptions, text_vectors
from ldl.errors import LDLError
from ldl.inference import Predictor
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("blank_charts")

QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


def opened(path: Path, votes: Path | None = None, **options: Any) -> TabularLDL:
    data = TabularLDL(str(path), votes=votes and str(votes), **{"scaling": "none", "folds": 4, **options})
    data.setup()
    return data


def vectors(texts: Any) -> np.ndarray:
    return text_vectors(list(texts), TextOptions())


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of ``-c text``, beside both files."""
    folder = tmp_path_factory.mktemp("text")
    table, votes = save(folder)
    main(["-c", "text", f"--data.path={table}", f"--data.votes={votes}", *QUIET, f"--run_dir={folder / 'run'}"])
    return folder


def checkpoint(folder: Path) -> Path:
    return folder / "run/checkpoints/last.ckpt"


def test_one_command(trained: Path) -> None:
    results = json.loads((trained / "run/results.json").read_text())
    assert results["head"] == "Softmax" and results["mean"]["majority_accuracy"] > 0.85
    assert "`comment` becomes 768 features by the frozen encoder `wordllama`" in (
        trained / "run/model_card.md"
    ).read_text().replace("\n", " ")


def test_a_file_of_text_beside_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = opened(*save(tmp_path), text_columns="comment")
    printed = " ".join(capsys.readouterr().out.split())
    assert "2 features 'comment', 'length', text 'comment' (768 features by wordllama)" in printed
    table, _ = comments()
    np.testing.assert_allclose(np.asarray(data.features)[:, :768], vectors(table["comment"]))
    assert data.feature_names == [f"comment[{k}]" for k in range(768)] + ["length"]
    assert data.names == list(map(str, table["id"]))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_with_one_row_a_vote(kind: str, tmp_path: Path) -> None:
    table, votes = comments()
    joined = votes.merge(table, on="id").rename(columns={"id": "item"})
    path = tmp_path / f"all.{kind}"
    joined.to_csv(path, index=False) if kind == "csv" else joined.to_parquet(path)
    data = opened(path, text_columns="auto")
    assert data.size == 120 and data.labels.names == ("kind", "rude")
    np.testing.assert_allclose(np.asarray(data.features)[:, :768], vectors(table["comment"]))


def test_values_of_texts(tmp_path: Path) -> None:
    table, _ = comments()
    table.assign(value=table["length"] / 10).to_csv(tmp_path / "t.csv", index=False)
    data = TabularValues(
        str(tmp_path / "t.csv"), text_columns=["comm*"], folds=4, scaling="none", drop=["length", "id"]
    )
    data.setup()
    np.testing.assert_allclose(np.asarray(data.features), vectors(table["comment"]))


def test_rows_without_text_are_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = comments()
    path, votes = save(tmp_path)
    blank = table.assign(comment=table["comment"].mask(table["id"] % 5 == 0, " "))
    blank.to_csv(path, index=False)
    data = opened(path, votes, text_columns="comment")
    assert "text 'comment' (768 features by wordllama, 24 rows without text)" in " ".join(
        capsys.readouterr().out.split()
    )
    assert data.encoding is not None and data.encoding.names[768] == "comment missing" and data.encoding.flags[768]
    features = np.asarray(data.features)
    np.testing.assert_array_equal(features[:, 768], table["id"] % 5 == 0)
    assert not features[table["id"] % 5 == 0, :768].any()
    with pytest.raises(LDLError, match="row 4, column 'comment' is missing .24 such rows.*pass --data.missing fill"):
        opened(path, votes, text_columns="comment", missing="refuse")


def test_words_for_gaps_are_text(tmp_path: Path) -> None:
    table, votes = comments()
    path, file = save(tmp_path)
    words = ["none", "?", "N/A", "nan", "7", "2024-01-31"] * 20
    table.assign(comment=words).to_csv(path, index=False)
    data = opened(path, file, text_columns="comment")
    np.testing.assert_allclose(np.asarray(data.features)[:, :768], vectors(words))


def test_long_text_is_cut_with_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, _ = comments()
    path, votes = save(tmp_path)
    table.assign(comment=table["comment"].where(table["id"] > 3, "rain " * 40)).to_csv(path, index=False)
    data = opened(path, votes, text_columns="comment", text_tokens=30)
    assert "3 rows cut after 30 tokens" in " ".join(capsys.readouterr().out.split())
    cut = text_vectors(["rain " * 40], TextOptions(tokens=30))
    np.testing.assert_allclose(np.asarray(data.features)[0, :768], cut[0])


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"text_columns": "comments"}, "has no column 'comments'; did you mean 'comment'"),
        ({"comment": "remark"}, {"text_columns": "auto"}, "no feature has a usual name of a column of text, such as t"),
        ({}, {"text_columns": "comment", "category_columns": "comment"}, "'comment' are both in data.category_columns"),
        (
            {},
            {"text_columns": "comment", "text_encoder": "/no/model"},
            "data.text_encoder '/no/model' .*sentence-trans",
        ),
        ({}, {}, "column 'comment' holds 120 different texts .*or read it as text with --data.text_columns comment"),
    ],
)
def test_what_is_wrong_is_one_line(
    changes: dict[str, str], options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    path, votes = save(tmp_path)
    pd.read_csv(path).rename(columns=changes).to_csv(path, index=False)
    with pytest.raises(LDLError, match=message) as error:
        opened(path, votes, **options)
    assert "\n" not in str(error.value)


def test_texts_of_a_table_with_one_row_a_vote_are_counted_per_item(tmp_path: Path) -> None:
    table, votes = comments()
    path = tmp_path / "votes.csv"
    votes.merge(table[["id", "comment"]], on="id").to_csv(path, index=False)  # each text stands in several rows
    with pytest.raises(LDLError, match="column 'comment' holds 120 different texts in 120 items.*--data.text_columns"):
        opened(path, None)
    assert np.asarray(opened(path, None, text_columns="comment").features).shape == (120, 768)


def test_matrices_have_no_text(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", features=np.eye(40), labels=np.full((40, 2), 0.5))
    with pytest.raises(LDLError, match="holds matrices without named columns; .*data.text_columns"):
        opened(tmp_path / "t.npz", text_columns="auto")


def test_predictions_of_tables_frames_and_files(trained: Path, tmp_path: Path) -> None:
    predictor = Predictor.from_checkpoint(checkpoint(trained))
    table, _ = comments(30, seed=1)
    frame = predictor.predict(table[["length", "comment"]]).distribution
    table.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(predictor.predict(tmp_path / "t.parquet").distribution, frame)
    rows = table[predictor.task.preprocessing["features"] and ["comment", "length"]].to_numpy(object)
    np.testing.assert_array_equal(predictor.predict(rows).distribution, frame)
    folder = tmp_path / "predicted"
    arguments = ["--stage=predict", f"--ckpt_path={checkpoint(trained)}", f"--data.path={tmp_path / 't.parquet'}"]
    main([*arguments, *QUIET, f"--run_dir={folder}"])
    written = pd.read_csv(folder / "predictions.csv")
    np.testing.assert_allclose(written.filter(regex="kind|rude").to_numpy()[:, :2], frame, atol=1e-4)
    assert list(written["name"]) == list(table["id"])


def test_a_cut_text_is_noted_in_predictions(trained: Path) -> None:
    predictor = Predictor.from_checkpoint(checkpoint(trained))
    table, _ = comments(3, seed=1)
    with pytest.warns(UserWarning, match="data frame: column 'comment': 1 of 3 rows cut after 512 tokens"):
        predictor.predict(table.assign(comment=["rain " * 600, "", None]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predictor.predict(table)


def test_a_test_of_the_checkpoint_repeats_the_run(trained: Path) -> None:
    folder = trained / "tested"
    config = str(trained / "run/config.yaml")
    main(["-c", config, "--stage=test", f"--ckpt_path={checkpoint(trained)}", *QUIET, f"--run_dir={folder}"])
    runs = [json.loads((path / "results.json").read_text())["mean"] for path in (trained / "run", folder)]
    assert runs[0]["kl"] == pytest.approx(runs[1]["kl"], abs=1e-6)


def test_a_test_finds_the_text_of_training(trained: Path) -> None:
    """Also where the options would not find it."""
    task = Task.load_from_checkpoint(checkpoint(trained))
    data = TabularLDL(str(trained / "comments.csv"), votes=str(trained / "votes.csv"))
    data.follow(task.labels, task.input_shape, task.preprocessing)
    data.setup()
    data.prepare_as(task.preprocessing)
    assert data.encoding is not None and [c.kind for c in data.encoding.columns] == ["text", "number"]


def test_the_audit_reads_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, votes = save(tmp_path)
    command(["audit", str(path), "--votes", str(votes), "--text_columns", "auto"])
    printed = capsys.readouterr().out
    assert "Krippendorff's alpha" in printed and "768 features by wordllama" in printed


def test_another_encoder_of_the_name_is_refused(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor.from_checkpoint(checkpoint(trained))
    monkeypatch.setattr("ldl.data.tables.columns.text_vectors", lambda texts, options: np.ones((len(texts), 8)))
    with pytest.raises(LDLError, match="'comment' was encoded by wordllama with 768 features in training, .* has 8"):
        predictor.predict(comments(3)[0])


def lewidi(folder: Path, table: pd.DataFrame, votes: pd.DataFrame) -> list[Path]:
    """Write comments as the shared tasks on disagreement do, a file a set, and return the files."""
    sets, files = table["id"] % 4, []
    for number, name in enumerate(("train", "train2", "dev", "test")):
        records = {}
        for item, text in zip(table["id"][sets == number], table["comment"][sets == number]):
            own = votes[votes["id"] == item]
            marks = {"annotations": ",".join(own["label"]), "annotators": ",".join(own["rater"])}
            records[str(item)] = {"text": text, **marks, "split": name.rstrip("2"), "lang": "en"}
        files.append(folder / f"{name}.json")
        files[-1].write_text(json.dumps(records))
    return files


def test_an_archive_of_exports_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, votes = comments()
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        for file in lewidi(tmp_path, table, votes):
            archive.write(file, file.name)
    data = opened(tmp_path / "all.zip", text_columns="auto")
    printed = " ".join(capsys.readouterr().out.split())
    assert "read as LeWiDi" in printed and "600 votes by 5 raters on 120 items are taken" in printed
    assert "split 'split'" in printed and "text 'text' (768 features by wordllama)" in printed
    assert [len(rows) for rows in (data.split.train, data.split.val, data.split.test)] == [60, 30, 30]
    places = {item: row for row, item in enumerate(data.names or [])}
    order = [places[str(item)] for item in table["id"]]
    np.testing.assert_allclose(np.asarray(data.features)[order, :768], vectors(table["comment"]))
    kind = (votes["label"] == "kind").groupby(votes["id"]).mean()
    np.testing.assert_allclose(data.columns["target"][order, 0], kind, atol=1e-6)


def test_an_export_names_its_columns(tmp_path: Path) -> None:
    records = [
        {"text": f"rain {number}", "id": number, "mood": mood, "place": "park", "annotator": rater, "annotation_id": 1}
        for number in range(30)
        for rater, mood in (("ann", "wet"), ("bob", "dry" if number % 2 else "wet"))
    ]
    (tmp_path / "t.json").write_text(json.dumps(records))
    data = opened(tmp_path / "t.json", text_columns="text", vote_column="mood")
    assert (data.size, data.labels.names) == (30, ("dry", "wet")) and data.annotations is not None
    with pytest.raises(LDLError, match="t.json: no feature has a usual name of a column of text"):
        opened(tmp_path / "t.json", text_columns="auto", vote_column="mood", drop="text")


def test_the_next_votes_are_chosen(trained: Path, tmp_path: Path) -> None:
    out = tmp_path / "next.csv"
    command(["votes", "--next", "5", str(trained / "run"), str(trained / "votes.csv"), "--out", str(out)])
    assert len(pd.read_csv(out)) == 5
