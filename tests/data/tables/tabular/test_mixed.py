"""Tables with text, dates and gaps, whose labels are votes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from fakes.films import OPTIONS, RATINGS, films, save
from fakes.paths import ROOT

from ldl.command import main
from ldl.command.console import command
from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.heads import StructRF
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("blank_charts")

QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
OF_FILMS: dict[str, Any] = {"label_columns": "r*", "votes_column": "votes", "drop": "title", "folds": 4}
CONFIGS = sorted(path.stem for path in (ROOT / "configs/runs/tabular").glob("*.yaml"))
EPOCHS = {"ldlf", "ldlf_paper", "softmax"}
"""Configurations that learn for more than one epoch."""


def opened(path: Path, **options: Any) -> TabularLDL:
    data = TabularLDL(str(path), **{"scaling": "none", "val_fraction": 0.0, **options})
    data.setup()
    return data


def run(folder: Path, *args: str) -> Path:
    main([*args, *QUIET, f"--run_dir={folder}"])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS)
def test_one_command_for_every_head(config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, epochs = save(tmp_path, films()), ["--trainer.max_epochs=2"] if config in EPOCHS else []
    run(tmp_path / "run", "-c", f"tabular_{config}", f"--data.path={path}", *OPTIONS, *epochs)
    assert "votes (counts layout, 118 items, 10 ordinal labels, " in capsys.readouterr().out
    (fold,) = json.loads((tmp_path / "run/results.json").read_text())["folds"]
    assert all(np.isfinite(value) for value in fold["metrics"].values() if value is not None)
    found = Predictor.from_checkpoint(tmp_path / "run/checkpoints/last.ckpt").predict(path)
    assert found.distribution.shape == (120, 10) and np.isfinite(found.distribution).all()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_of_films(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = films()
    data = opened(save(tmp_path, table, kind), **OF_FILMS)
    said = capsys.readouterr().out
    assert "votes an item; 2 items without a vote are left out), item 'id', 6 features" in " ".join(said.split()), said
    assert "category 'mpaa', gaps of 'budget' filled with medians and marked" in said and said.count("\n") == 2
    assert "read as numbers on a scale; if they are codes of classes, pass label_type nominal" in said
    assert data.labels.axes == (tuple(map(float, range(1, 11))),) and data.size == 118
    shares = table[RATINGS].to_numpy()[:118]
    # Counts are whole, so shares differ from the rounded ones of the file by less than a vote.
    off = np.abs(data.columns["target"].numpy() - shares / shares.sum(1)[:, None])
    assert (off < 1 / table["votes"][:118].to_numpy()[:, None] + 1e-6).all()
    np.testing.assert_allclose(data.columns["votes"], table["votes"][:118], rtol=1e-6)
    assert data.names == list(map(str, table["id"][:118]))
    classes = ["NC-17", "PG", "PG-13", "R", "missing"]
    assert data.feature_names == ["year", "length", "budget", "budget missing", *(f"mpaa={c}" for c in classes), *"AS"][
        :9
    ] + ["Action", "Short"]
    encoded = pd.DataFrame(data.features, columns=data.feature_names)
    assert (encoded["budget missing"] == table["budget"][:118].isna()).all()
    known = table["budget"].iloc[data.split.train].quantile(interpolation="lower")
    assert (encoded["budget"] == table["budget"][:118].fillna(known)).all()
    assert (encoded["mpaa=missing"] == (table["mpaa"][:118].replace("", None).isna())).all()
    assert (encoded[[f"mpaa={c}" for c in classes]].sum(axis=1) == 1).all()
    assert data.input_shape == (11,) and torch.equal(data.scaled, torch.from_numpy(data.features).float())


def test_columns_are_chosen_by_names_and_patterns(tmp_path: Path) -> None:
    path = save(tmp_path, films())
    data = opened(path, **OF_FILMS, feature_columns=["year", "[AS]*", "votes", "r1"])
    assert data.feature_names == ["year", "Action", "Short"]  # neither labels nor the number of votes
    data = opened(path, **{**OF_FILMS, "drop": ["title", "*o*"], "label_columns": RATINGS}, missing="keep")
    assert data.feature_names == ["year", "length", "budget", *(f"mpaa={c}" for c in ("NC-17", "PG", "PG-13", "R"))] + [
        "mpaa=missing"
    ]
    assert data.has_missing
    assert "id" not in opened(path, **OF_FILMS, item_column="length").feature_names
    assert "id" in opened(path, **OF_FILMS, item_column="length", feature_columns=["id", "year"]).feature_names


def test_names_may_hold_brackets_and_labels_may_be_dropped(tmp_path: Path) -> None:
    table = films().rename(columns={"length": "length [min]"})
    data = opened(save(tmp_path, table), **{**OF_FILMS, "drop": ["title", "length [min]", "r10"]}, item_column="id")
    assert data.feature_names is not None and "length [min]" not in data.feature_names and len(data.labels) == 9
    path = save(tmp_path, table.drop(columns=["mpaa", "title"]).assign(budget=1.0), "parquet")
    with pytest.raises(LDLError, match="stays on disk, where all features are numbers; leave data.category_columns"):
        opened(path, label_columns="r*", votes_column="votes", category_columns="Short", in_memory=0)
    with pytest.raises(LDLError, match="2 rows have no vote, and the table stays on disk"):
        opened(path, label_columns="r*", votes_column="votes", in_memory=0)


def test_three_layouts_are_one(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    votes = pd.DataFrame(rng.integers(1, 4, (40, 3)), columns=["ann", "bob", "cat"]).astype("Int64")
    votes[rng.random((40, 3)) < 0.2] = pd.NA
    votes.iloc[7], votes.iloc[8, 0] = pd.NA, 1
    features = pd.DataFrame(
        {"item": [f"n{k}" for k in range(40)], "x": rng.normal(size=40), "person": np.arange(40) // 2}
    )
    matrix = votes.assign(item=features["item"])
    long = matrix.melt("item", var_name="rater", value_name="label").dropna().sample(frac=1, random_state=0)
    counts = pd.DataFrame({f"s{k}": (votes == k).sum(axis=1).to_numpy(int) for k in (1, 2, 3)})
    features.to_csv(tmp_path / "x.csv", index=False)
    matrix.to_csv(tmp_path / "matrix.csv", index=False)
    long.to_csv(tmp_path / "long.csv", index=False)
    features.join(counts).to_csv(tmp_path / "counts.csv", index=False)
    features.join(counts.rename(columns="label:{}".format)).to_csv(tmp_path / "named.csv", index=False)
    found = [
        opened(tmp_path / "x.csv", votes=str(tmp_path / "matrix.csv"), rater_columns=["ann", "bob", "cat"]),
        opened(tmp_path / "x.csv", votes=str(tmp_path / "long.csv")),
        opened(tmp_path / "x.csv", votes=str(tmp_path / "counts.csv"), label_columns="s*"),
        opened(tmp_path / "counts.csv", label_columns="s*"),
        opened(tmp_path / "named.csv"),
    ]
    for data in found:
        assert data.size == 39 and data.feature_names == ["x"] and data.protocol == "group_exclusive"
        assert data.labels == found[0].labels and data.labels.kind == "ordinal"
        for name in ("target", "votes", "group"):
            assert torch.equal(data.columns[name], found[0].columns[name]), name
        assert torch.equal(data.scaled, found[0].scaled) and data.names == found[0].names
        assert data.leak == 0


def test_labels_without_votes_in_a_test_table(tmp_path: Path) -> None:
    pd.DataFrame({"item": ["a", "b"], "x": [1, 2]}).to_csv(tmp_path / "x.csv", index=False)
    votes = pd.DataFrame({"item": ["a", "a", "b"], "rater": ["r", "s", "r"], "label": [1, 3, 3]})
    votes.to_csv(tmp_path / "v.csv", index=False)
    data = TabularLDL(str(tmp_path / "x.csv"), votes=str(tmp_path / "v.csv"), folds=2, val_fraction=0.0)
    data.follow(LabelSpace.ordinal([1, 2, 3]), None, None)
    data.setup()
    assert data.columns["target"].tolist() == [[0.5, 0, 0.5], [0, 0, 1]] and len(data.labels) == 3


def test_shares_without_a_number_of_votes(tmp_path: Path) -> None:
    table = pd.DataFrame({"x": [1, 2], "sad": [0.5, 0.25], "happy": [0.5, 0.75]})
    table.to_csv(tmp_path / "t.csv", index=False)
    data = opened(tmp_path / "t.csv", folds=2, label_columns=["happy", "sad"], label_names=["happy", "sad"])
    assert data.labels.names == ("happy", "sad") and "votes" not in data.columns
    assert data.columns["target"].tolist() == [[0.5, 0.5], [0.75, 0.25]]
    table.assign(sad=[5.5, 2]).to_csv(tmp_path / "t.csv", index=False)
    data = opened(tmp_path / "t.csv", folds=2, label_columns=["happy", "sad"], normalize=True)
    np.testing.assert_allclose(data.columns["target"][0], [5.5 / 6, 0.5 / 6], rtol=1e-6)


def test_nodules_keep_patients_apart(ldl_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = opened(
        ldl_data / "lidc/nodules.csv", votes=str(ldl_data / "lidc/readings.csv"), vote_column="malignancy",
        item_column="item", rater_column="reading", group_key="patient", label_unit="points", weighting="dirichlet",
    )  # fmt: skip
    said = capsys.readouterr().out
    assert "votes (long layout, 2673 items, 5 ordinal labels, 1 to 4 votes an item" in said
    assert data.protocol == "group_exclusive" and data.leak == 0 and data.labels.unit == "points"
    assert data.columns["votes"].sum() == 6859 and data.columns["weight"][data.split.train].max() > 1
    assert data.feature_names is not None and not {"item", "patient"} & set(data.feature_names)


LABELS = {"label:1": [0.5, 0.5], "label:2": [0.5, 0.5]}
WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"x": ["1", "2", "many"], "label:a": [1, 1, 1]}, {}, "line 4, column 'x' is 'many', not a finite number"),
    (
        {"x": [1] * 60, "name": [f"n{k}" for k in range(60)], "label:a": [1] * 60},
        {},
        "column 'name' holds 60 different texts in 60 rows, .* leave it out with --data.drop name, or read it as text "
        "with --data.text_columns name$",
    ),
    ({"x": [1, None], "c": ["a", "b"], **LABELS}, {"missing": "refuse"}, "line 3, .*'x' is '', .* pass --data.missing"),
    ({"x": [1, 2], **LABELS}, {"drop": "y*"}, r"has no column 'y\*'"),
    ({"x": [1, 2], **LABELS}, {"feature_columns": ["z"]}, "has no column 'z'"),
    ({"x": [1, 2], **LABELS}, {"drop": ["x"]}, "needs rows, feature columns"),
    ({"x": [1, 2], "r1": [30, 65], "r2": [70, 65]}, {"label_columns": "r*"}, "row 0 sum to 100, not 1 .*votes_column"),
    ({"x": [1, 2], "r1": [1, 0], "r2": [2, 0]}, {"label_columns": "r*", "unlabelled": "error"}, "1 items have no vote"),
    ({"x": [1, 2], "r1": [1, 0], "r2": [2, -1]}, {"label_columns": "r*"}, "'-1' in line 3; counts are finite numbers"),
    ({"x": [1, 2], "r1": [1, 1], "r2": [2, 1], "rate": [1, 2]}, {"label_columns": "r*"}, "numbered, except 'rate'"),
    ({"x": [1, 2], "r1": [1, 1]}, {"label_columns": "r*", "votes_column": "vote"}, "has no column 'vote'"),
    ({"x": [1, 2], **LABELS}, {"votes": "v.csv"}, "no column names the items that have votes .*--data.item_column"),
    ({"item": ["a", None], "x": [1, 2], **LABELS}, {"votes": "v.csv"}, "column 'item' is '', which names no item"),
    ({"x": [1, 2], **LABELS}, {"weighting": "votes"}, "the number of votes of each row is unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "options", "message"), WRONG, ids=[case[2][:30] for case in WRONG])
def test_what_is_wrong_is_one_line(
    table: dict[str, Any], options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "r1" in table and message.startswith("row 0"):
        table = {**table, "r1": [30.5, 64.5], "r2": [69.5, 65]}
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"item": ["a"], "rater": ["r"], "label": ["1"]}).to_csv("v.csv", index=False)
    path = tmp_path / "t.csv"
    pd.DataFrame(table).convert_dtypes().to_csv(path, index=False)
    with pytest.raises(LDLError, match=message) as refused:
        opened(path, folds=2, **options)
    assert "\n" not in str(refused.value)


def test_matrices_have_no_named_columns(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", features=np.array([[1.0], [np.nan]]), labels=np.ones((2, 1)))
    for options in ({"drop": "x"}, {"label_columns": "r*"}, {"votes": "v.csv"}):
        with pytest.raises(LDLError, match="holds matrices without named columns"):
            opened(tmp_path / "t.npz", **options)
    with pytest.raises(LDLError, match="features row 1, column 0 is nan"):
        opened(tmp_path / "t.npz")


def test_a_fold_learns_from_its_training_rows_alone(tmp_path: Path) -> None:
    table = films()
    data = opened(save(tmp_path, table), **OF_FILMS)
    test = data.split.test
    before = [data.encoding.state(), data.features[data.split.train]]  # type: ignore[union-attr]
    table.loc[test[0], "mpaa"], table.loc[test, "budget"] = "X", 1e9
    data = opened(save(tmp_path, table), **OF_FILMS)
    assert data.encoding is not None and data.encoding.state() == before[0]
    np.testing.assert_array_equal(data.features[data.split.train], before[1])
    assert data.features[test[0], 4:9].sum() == 0  # an unseen category
    data.select_fold(1)
    assert data.feature_names is not None and "mpaa=X" in data.feature_names and data.input_shape == (12,)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_codes_are_categories_on_demand(kind: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"zip": ["01", "2", "01", "2"], "code": [1, 2, 2, 3], "x": [1.0, 2, 3, 4], "label:a": 1.0})
    table["zip"] = table["zip"] if kind == "csv" else [1, 2, 1, 2]
    data = opened(save(tmp_path, table, kind), folds=2, category_columns=["zip", "c*"])
    assert data.encoding is not None and [c.kind for c in data.encoding.columns] == ["category", "category", "number"]
    kept = set(data.encoding.columns[0].categories)
    assert kept <= ({"01", "2"} if kind == "csv" else {"1", "2"}) and kept
    with pytest.raises(LDLError, match="has no column 'zap'; did you mean 'zip'"):
        opened(tmp_path / f"films.{kind}", category_columns="zap")


@pytest.mark.parametrize("scaling", ["standard", "ranks", "quantile_normal", "quantile_uniform"])
def test_categories_stay_moderate_when_scaled(scaling: Any, tmp_path: Path) -> None:
    data = opened(save(tmp_path, films()), **OF_FILMS, scaling=scaling)
    assert data.encoding is not None and data.feature_names is not None
    flags = data.encoding.flags
    assert [name for name, flag in zip(data.feature_names, flags) if flag] == ["budget missing"] + [
        name for name in data.feature_names if name.startswith("mpaa=")
    ]
    scaled, raw = data.scaled[:, flags], torch.from_numpy(data.features[:, flags])
    if scaling == "ranks":
        torch.testing.assert_close(scaled, raw.float())
    elif scaling != "standard":
        end = 1.0 if scaling == "quantile_normal" else (0.8413447 - 0.5) * 12**0.5
        torch.testing.assert_close(scaled, (2 * raw - 1).float() * end, atol=1e-3, rtol=0)
    assert float(data.scaled.abs().max()) > 1.2


def test_numbers_are_as_before(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=20), "flag": rng.random(20) < 0.5, "label:a": 0.25, "label:b": 0.75})
    table.to_csv(tmp_path / "t.csv", index=False)
    data = opened(tmp_path / "t.csv", scaling="standard")
    assert data.mixed is None and data.preprocessing.keys() == {"features", "key", "scaling"}
    assert data.features.flags["C_CONTIGUOUS"] and data.labels.kind == "nominal" and "votes" not in data.columns
    np.testing.assert_array_equal(data.features, table[["x", "flag"]].to_numpy(float))


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    path = save(folder, films())
    args = [f"--data.path={path}", *OPTIONS, "--model.head.trees=5", "--data.folds=4"]
    return run(folder / "run", "-c", "tabular_structrf", *args)


def checkpoint(run: Path) -> Path:
    return run / "checkpoints/last.ckpt"


def test_predictions_need_no_preparation(trained: Path, tmp_path: Path) -> None:
    predictor, table = Predictor.from_checkpoint(checkpoint(trained)), films()
    expected = predictor.predict(trained.parent / "films.csv").distribution
    turned = table[table.columns[::-1]].drop(columns=["title", *RATINGS])
    objects = table[["year", "length", "budget", "mpaa", "Action", "Short"]].to_numpy(object)
    for given in (table, turned, save(tmp_path, turned, "parquet"), save(tmp_path, turned), objects):
        np.testing.assert_array_equal(predictor.predict(given).distribution, expected)
    row = turned.iloc[[0]].assign(mpaa="unheard of", length=np.nan, year=pd.array([1990], "Int64"))
    assert np.isfinite(predictor.predict(row).distribution).all()
    assert predictor.evidence(row) is not None
    for wrong, message in (
        (turned.drop(columns="mpaa"), "no column 'mpaa', which the model was trained on"),
        (turned.assign(year="old"), "column 'year' is str 'old'"),
        (objects[:, 1:], r"inputs have shape \(120, 5\), but the model takes \(N, 6\), with the columns 'year'"),
    ):
        with pytest.raises(LDLError, match=message):
            predictor.predict(wrong)


def test_a_checkpoint_is_tested_by_its_own_encoding(trained: Path, tmp_path: Path) -> None:
    table = films().iloc[:, ::-1]
    path = save(
        tmp_path, table.assign(mpaa=table["mpaa"].replace({"": "Q", "PG": "Q"}), budget=table["budget"].fillna(7))
    )
    config, same = str(trained / "config.yaml"), f"--ckpt_path={checkpoint(trained)}"
    found = run(tmp_path / "a", "-c", config, "--stage=test", same)
    first, again = (json.loads((folder / "results.json").read_text())["mean"] for folder in (trained, found))
    assert first == pytest.approx(again)
    run(tmp_path / "b", "-c", config, "--stage=test", same, f"--data.path={path}")
    numbers = save(tmp_path, table.assign(mpaa=1.5, budget=7))
    with pytest.raises(SystemExit):
        run(
            tmp_path / "c",
            "-c",
            config,
            "--stage=test",
            same,
            f"--data.path={save(tmp_path, table.drop(columns='mpaa'))}",
        )
    save(tmp_path, table.assign(mpaa=1.5, budget=7))
    run(tmp_path / "d", "-c", config, "--stage=test", same, f"--data.path={numbers}")  # no column is encoded by itself
    run(tmp_path / "e", "--stage=predict", same, f"--data.path={path}")
    predicted = pd.read_csv(tmp_path / "e/predictions.csv")
    np.testing.assert_allclose(
        predicted.filter(like="prediction:"), Predictor.from_checkpoint(checkpoint(trained)).predict(path).distribution,
        atol=1e-6,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("columns", [["budget", "year"], ["mpaa"]], ids=str)
def test_columns_of_one_kind(columns: list[str], kind: str, tmp_path: Path) -> None:
    table = films()[["votes", *columns, *RATINGS]]
    path = save(tmp_path, table, kind)
    data = opened(path, label_columns="r*", votes_column="votes", category_columns=columns[-1:])
    task = Task(StructRF(trees=2))
    options = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "max_epochs": 1}
    trainer = pl.Trainer(**options, enable_checkpointing=False, use_distributed_sampler=False, accelerator="cpu")
    trainer.fit(task, datamodule=data)
    task.trainer = None  # type: ignore[assignment]
    predictor = Predictor(task)
    found = [predictor.predict(given).distribution for given in (table, path)]
    np.testing.assert_array_equal(*found)


def test_categories_of_training_stay_categories(tmp_path: Path) -> None:
    table = films(200)[:198].assign(mpaa=[f"{number % 40:02}" + "x" * (number > 40) for number in range(198)])
    args = [f"--data.path={save(tmp_path, table)}", *OPTIONS, "--model.head.trees=2", "--data.folds=4"]
    found = run(tmp_path / "run", "-c", "tabular_structrf", *args)
    few = table[:60].assign(mpaa=[f"{number:02}" for number in range(60)])  # mostly distinct, and all of them numbers
    save(tmp_path, few)
    run(tmp_path / "a", "-c", str(found / "config.yaml"), "--stage=test", f"--ckpt_path={checkpoint(found)}")
    expected = Predictor.from_checkpoint(checkpoint(found)).predict(few).distribution
    tested = pd.read_csv(tmp_path / "a/predictions.csv")
    np.testing.assert_allclose(tested.filter(like="prediction:"), expected[tested["index"]], atol=1e-6)


def test_a_model_of_numbers_takes_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = films().drop(columns="mpaa").assign(budget=1.0)
    args = [f"--data.path={save(tmp_path, table)}", *OPTIONS, "--model.head.trees=2", "--data.folds=4"]
    found = run(tmp_path / "run", "-c", "tabular_structrf", *args)
    save(tmp_path, table.assign(year="long ago"))
    with pytest.raises(SystemExit):
        run(tmp_path / "a", "-c", str(found / "config.yaml"), "--stage=test", f"--ckpt_path={checkpoint(found)}")
    assert "column 'year' is str 'long ago' and such, not numbers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c[3].update(kind="sound"), r"encoding\[3\].kind is sound, not number, date, category or text"),
        (lambda c: c[3].update(kind="text"), r"encoding\[3\] lacks an entry, or has an unknown one"),
        (lambda c: c[3].update(kind="text", text={"encoder": "a"}), r"encoding\[3\].text is no encoding of text$"),
        (
            lambda c: c[3].update(kind="text", text={"encoder": "a", "tokens": 0, "width": 9}),
            r"encoding\[3\].text is no encoding of text: a name, and numbers of tokens and features",
        ),
        (lambda c: c[3].update(categories=["R", "R"]), "categories is not a list of distinct texts"),
        (lambda c: c[0].update(fill=[np.nan]), "fill is .*nan.*, not 1 numbers"),
        (lambda c: c[0].pop("other"), "lacks an entry, or has an unknown one"),
        (lambda c: c.pop(), "makes 10 features, and the model takes 11"),
        (lambda c: c[0].update(name="length"), "has a column twice"),
    ],
)
def test_damaged_encodings_are_refused(trained: Path, tmp_path: Path, change: Any, message: str) -> None:
    saved = torch.load(checkpoint(trained), weights_only=True)
    change(saved["ldl"]["preprocessing"]["encoding"])
    torch.save(saved, tmp_path / "a.ckpt")
    with pytest.raises(LDLError, match=message):
        Task.load_from_checkpoint(tmp_path / "a.ckpt")


def test_it_is_audited(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = films()[:118]
    path = str(save(tmp_path, table))
    command(["audit", path, "--label_columns", "r*", "--votes_column", "votes"])
    assert "agreement   Krippendorff's alpha" in capsys.readouterr().out
    shares = table[RATINGS].div(table[RATINGS].sum(axis=1), axis=0).add_prefix("label:")
    save(tmp_path, table.drop(columns=[*RATINGS, "votes", "id"]).join(shares))
    with pytest.raises(SystemExit):
        command(["audit", path])
    assert "leave it out with --drop title" in capsys.readouterr().err
    command(["audit", path, "--drop", "title"])
    assert "missing     " in (said := capsys.readouterr().out) and "features    10" in said


def test_heads_that_take_gaps_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = [f"--data.path={save(tmp_path, films())}", *OPTIONS]
    run(tmp_path / "run", "-c", "tabular_boostedtrees", *args, "--model.head.rounds=3")
    known = Task.load_from_checkpoint(checkpoint(tmp_path / "run")).preprocessing
    assert known is not None and "budget missing" not in known["features"] and "mpaa=R" in known["features"]
    with pytest.raises(SystemExit):
        run(tmp_path / "b", "-c", "tabular_structrf", *args, "--data.missing=keep")
    assert "StructRF takes no missing features" in capsys.readouterr().err
    assert StructRF.takes_missing is False
