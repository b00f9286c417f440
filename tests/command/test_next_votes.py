"""``ldl votes --next``: the items of a run's data that should get another vote."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fakes import image_votes

from ldl import charts
from ldl.annotations import DirichletMixture, expected_gain
from ldl.checkpoint import read_checkpoint
from ldl.command import main
from ldl.command.console import command
from ldl.command.next_votes import rank_items
from ldl.errors import LDLError
from ldl.inference import Predictor

ITEMS, FOLDS = 60, 3
LABELS = ("calm", "happy", "sad")
RNG = np.random.default_rng(0)
TRUTH = RNG.dirichlet([0.5, 0.5, 0.5], ITEMS)
NAMES = [f"i{row:02d}" for row in range(ITEMS)]
UNLABELLED = NAMES[-4:]
TABLE = pd.DataFrame({"item": NAMES, "a": np.log(TRUTH[:, 0]), "b": TRUTH[:, 1], "kind": RNG.choice(["x", "y"], ITEMS)})
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--model.head=AAKNN", "--trainer.max_epochs=1"]


def cast(votes: int, seed: int, first: int = 0) -> pd.DataFrame:
    """Single votes on all items but the unlabelled."""
    rng = np.random.default_rng(seed)
    rows = [
        (name, f"r{first + rater}", LABELS[rng.choice(3, p=share)])
        for name, share in zip(NAMES, TRUTH)
        for rater in range(votes)
        if name not in UNLABELLED
    ]
    return pd.DataFrame(rows, columns=["item", "rater", "label"])


VOTES = cast(3, 1)
COUNTS = pd.crosstab(VOTES["item"], VOTES["label"]).reindex(NAMES, fill_value=0)[list(LABELS)]


@pytest.fixture(scope="module", autouse=True)
def no_charts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(charts, "overview", lambda *arguments: {})
        patched.setattr(charts, "learning_curves", lambda *arguments: None)
        patched.setattr(charts, "folds", lambda *arguments: None)
        patched.setattr(charts, "rater_equivalence", lambda *arguments: None)
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``items.csv``, ``votes.csv`` and the runs ``crossval`` and ``one`` on them."""
    folder = tmp_path_factory.mktemp("next")
    TABLE.to_csv(folder / "items.csv", index=False)
    VOTES.to_csv(folder / "votes.csv", index=False)
    data = ["--data=TabularLDL", f"--data.path={folder / 'items.csv'}", f"--data.votes={folder / 'votes.csv'}"]
    train(folder / "crossval", *data, "--stage=crossval")
    train(folder / "one", *data)
    return folder


def train(run: Path, *options: str) -> None:
    main([*options, f"--data.folds={FOLDS}", *QUIET, f"--run_dir={run}"])


def ranked(run: Path, votes: Path, number: int, out: Path) -> tuple[pd.DataFrame, str]:
    """Return the file of the ranked items, by item, and the report."""
    report = "\n".join(rank_items(run, votes, number, out))
    return pd.read_csv(out, dtype={"item": str}).set_index("item"), report


def out_of_fold(run: Path) -> pd.DataFrame:
    tables = [pd.read_csv(path, index_col="name") for path in sorted(run.glob("fold_*/predictions.csv"))]
    return pd.concat(tables)[[f"prediction:{label}" for label in LABELS]]


def test_every_item_is_ranked_by_its_held_out_prediction(folder: Path, tmp_path: Path) -> None:
    table, report = ranked(folder / "crossval", folder / "votes.csv", ITEMS, tmp_path / "next.csv")
    known = [name for name in NAMES if name not in UNLABELLED]
    prediction = pd.DataFrame(index=NAMES, columns=list(LABELS), dtype=float)
    prediction.loc[known] = out_of_fold(folder / "crossval").loc[known].to_numpy()
    checkpoints = sorted(folder.glob("crossval/fold_*/checkpoints/last.ckpt"))
    folds = [Predictor.from_checkpoint(path).predict(TABLE.iloc[-4:]).distribution for path in checkpoints]
    prediction.loc[UNLABELLED] = np.mean(folds, 0)
    shares = prediction.to_numpy() / prediction.to_numpy().sum(1, keepdims=True)
    counts, voted = COUNTS.to_numpy(float), np.arange(ITEMS) < ITEMS - 4
    combiner = DirichletMixture.fit(counts[voted])
    model_votes = combiner.model_votes(shares[voted], counts[voted])
    gain = expected_gain(counts, combiner, shares, model_votes)
    np.testing.assert_allclose(table.loc[NAMES, "gain"], gain, rtol=1e-5)
    assert (table["gain"].diff().dropna() <= 0).all()
    assert (table.loc[NAMES, "votes"] == COUNTS.sum(1)).all()
    np.testing.assert_allclose(table[[f"next:{label}" for label in LABELS]].sum(1), 1, rtol=1e-6)
    np.testing.assert_allclose(table.loc[UNLABELLED, "next:sad"], shares[-4:, 2], rtol=1e-5)
    assert f"items       {ITEMS} in {folder / 'items.csv'}, 4 of them without a vote; 168 votes" in report
    assert f"model       {FOLDS} folds; 4 of {ITEMS} items are in no fold and get the mean prediction" in report
    assert f"counts as {model_votes:.2f} votes, fitted to 56 held-out items" in report
    assert f"by {gain.sum():.4g} nats in total; on items at random by {gain.sum():.4g}" in report


def test_the_first_items_have_the_largest_gain(folder: Path, tmp_path: Path) -> None:
    every, _ = ranked(folder / "crossval", folder / "votes.csv", ITEMS, tmp_path / "all.csv")
    first, report = ranked(folder / "crossval", folder / "votes.csv", 15, tmp_path / "next.csv")
    pd.testing.assert_frame_equal(first, every.iloc[:15])
    total, usual = map(float, re.findall(r"by ([\d.]+)", report)[:2])
    assert total == pytest.approx(every["gain"][:15].sum(), rel=1e-3) and total > usual
    assert usual == pytest.approx(15 * every["gain"].mean(), rel=1e-3)
    lines = rank_items(folder / "crossval", folder / "votes.csv", 15)
    assert lines[-1] == "            and 5 more; --out FILE writes all" and lines[-2].startswith(every.index[9])


def test_later_votes_count(folder: Path, tmp_path: Path) -> None:
    """Votes since the training, on new items too, with the labels in another order of appearance."""
    more = pd.concat(
        [cast(5, 2, first=3)[::-1], VOTES, pd.DataFrame([(NAMES[-1], "r0", "sad")], columns=VOTES.columns)]
    )
    more.to_csv(tmp_path / "more.csv", index=False)
    table, report = ranked(folder / "crossval", tmp_path / "more.csv", ITEMS, tmp_path / "next.csv")
    counts = pd.crosstab(more["item"], more["label"]).reindex(NAMES, fill_value=0)
    assert (table.loc[NAMES, "votes"] == counts.sum(1)).all()
    assert "3 of them without a vote; 449 votes" in report


def test_one_run_says_which_items_it_may_have_learned(folder: Path, tmp_path: Path) -> None:
    table, report = ranked(folder / "one", folder / "votes.csv", ITEMS, tmp_path / "next.csv")
    tested = pd.read_csv(folder / "one" / "predictions.csv")
    rest = ITEMS - len(tested)
    assert len(table) == ITEMS and f"last.ckpt; {rest} of {ITEMS} items are not in its test set" in report
    assert "a run with --stage crossval predicts every item held out" in report
    assert f"fitted to {len(tested)} held-out items" in report


def test_a_checkpoint_alone_has_its_number_of_votes(folder: Path, tmp_path: Path) -> None:
    checkpoint = shutil.copy(folder / "one" / "checkpoints" / "last.ckpt", tmp_path / "model.ckpt")
    _, report = ranked(checkpoint, folder / "votes.csv", 5, tmp_path / "next.csv")
    model_votes = read_checkpoint(checkpoint)["ldl"]["model_votes"]
    assert f"counts as {model_votes:.2f} votes, as in the checkpoint" in report
    assert f"{ITEMS} of {ITEMS} items are not in its test set" in report


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["long", "counts"])
def test_votes_in_the_table_of_features(layout: str, tmp_path: Path) -> None:
    named = TABLE[:-4].merge(COUNTS.add_prefix("label:"), left_on="item", right_index=True)
    table = TABLE.merge(VOTES, on="item") if layout == "long" else named
    table.to_csv(tmp_path / "train.csv", index=False)
    train(tmp_path / "run", "--data=TabularLDL", f"--data.path={tmp_path / 'train.csv'}", "--stage=crossval")
    same, report = ranked(tmp_path / "run", tmp_path / "train.csv", ITEMS - 4, tmp_path / "next.csv")
    assert "every item is predicted by a model that was not trained on it" in report
    assert (same["votes"] == 3).all()
    if layout == "long":  # votes alone join the table of the run
        moved = pd.concat([table, table.assign(rater=table["rater"] + "b")])
        moved.to_csv(tmp_path / "later.csv", index=False)
        later, _ = ranked(tmp_path / "run", tmp_path / "later.csv", ITEMS - 4, tmp_path / "next.csv")
        assert (later["votes"] == 6).all()


@pytest.mark.slow
def test_rows_without_names_have_no_held_out_predictions(tmp_path: Path) -> None:
    table = pd.concat([TABLE.drop(columns="item"), COUNTS.add_prefix("label:").reset_index(drop=True)], axis=1)[:-4]
    table.to_csv(tmp_path / "train.csv", index=False)
    train(tmp_path / "run", "--data=TabularLDL", f"--data.path={tmp_path / 'train.csv'}", "--stage=crossval")
    ranks, report = ranked(tmp_path / "run", tmp_path / "train.csv", ITEMS - 4, tmp_path / "next.csv")
    assert f"{FOLDS} folds; items have no names, so their held-out predictions cannot be found" in report
    assert "as in the checkpoint" in report and sorted(map(int, ranks.index)) == list(range(ITEMS - 4))


def test_images(tmp_path: Path) -> None:
    root = image_votes.voted(tmp_path)
    data = ["--data=ImageLDL", f"--data.path={root / 'counts.csv'}", "--data.crop_size=16"]
    main([*data, "--data.folds=2", *QUIET, "--stage=crossval", f"--run_dir={tmp_path / 'run'}"])
    votes = pd.read_csv(root / "long.csv")
    kept = votes[votes["path"] != "images/3.png"][["path", "rater", "label"]]
    kept.to_csv(root / "later.csv", index=False)
    table, report = ranked(tmp_path / "run", root / "later.csv", 24, tmp_path / "next.csv")
    assert "24 in" in report and "1 of them without a vote" in report
    counts = kept.groupby("path").size()
    assert (table.loc[counts.index, "votes"] == counts).all() and table.loc["images/3.png", "votes"] == 0


def test_the_command(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths, out = [str(folder / "crossval"), str(folder / "votes.csv")], tmp_path / "next.csv"
    for _ in range(2):  # it replaces its own file
        command(["votes", "--next", "3", *paths, "--out", str(out)])
        printed = capsys.readouterr().out
        assert printed.endswith(f"wrote       {out}, 3 items\n")
        assert len(re.findall(r"^i\d\d  ", printed, re.MULTILINE)) == 3
    for options, message in (
        (paths[:1], "--next takes a run and a file of votes, such as RUN votes.csv, and here are 1 paths"),
        ([*paths, "--vote_column", "label"], "--next reads votes with the options of the run; leave --vote_column out"),
    ):
        with pytest.raises(SystemExit):
            command(["votes", "--next", "3", *options])
        assert capsys.readouterr().err == f"error: {message}\n"


def test_mistakes_are_one_line(folder: Path, tmp_path: Path) -> None:
    run, votes = folder / "crossval", folder / "votes.csv"
    (tmp_path / "other.csv").write_text("mine\n")
    VOTES.replace("sad", "angry").to_csv(tmp_path / "labels.csv", index=False)
    VOTES.replace("i00", "new").to_csv(tmp_path / "items.csv", index=False)
    VOTES.drop_duplicates("item").to_csv(tmp_path / "single.csv", index=False)
    cases = [
        ((tmp_path, votes, 3), f"no checkpoint at {tmp_path}/checkpoints/last.ckpt; give a run directory"),
        ((run, tmp_path / "none.csv", 3), "no file of votes at .*none.csv; correct the path"),
        ((run, votes, 0), "0 items cannot be chosen of 60"),
        ((run, votes, 61), "61 items cannot be chosen of 60, each at most once"),
        ((run, tmp_path / "labels.csv", 3), "the votes have the labels .*angry.*, and the model has .*sad"),
        ((run, tmp_path / "items.csv", 3), "1 of 56 items with votes are not in .*items.csv, the first is 'new'"),
        ((run, tmp_path / "single.csv", 3), "none of 56 items has two votes"),
        ((run, votes, 3, tmp_path / "other.csv"), "--out .*other.csv exists, and this command did not write it"),
    ]
    for arguments, message in cases:
        with pytest.raises(LDLError, match=message):
            rank_items(*arguments)
