"""What a run reports of the votes behind its targets, from the batches to results.json, table, card and chart."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fakes.forks import run_in_one_and_two
from fakes.processes import assert_close
from fakes.rater_votes import Seen, VotedRows

from ldl import charts
from ldl.annotations import (
    DirichletMixture,
    entropy_bias,
    krippendorff_alpha,
    majority_accuracy,
    rater_equivalence,
    vote_nll,
)
from ldl.data import TabularLDL
from ldl.heads import MeanPredictor
from ldl.jobs.crossval import crossvalidate
from ldl.labels import LabelSpace
from ldl.metrics.stage import row_metrics
from ldl.reports.votes import compare_with_raters, conditions_in_words, power_columns, worth_in_words
from ldl.run.results import print_table
from ldl.task import Task

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 1}
NAMES = ["vote_nll", "vote_nll_weighted", "majority_accuracy", "kl_bias"]
LABELS = LabelSpace.nominal(["calm", "happy", "sad"])


pytestmark = pytest.mark.usefixtures("pixel_charts")


def measured(
    data: Any, folder: Path | None = None, head: Any = Seen, **options: Any
) -> tuple[dict[str, Any], list[dict[str, np.ndarray]]]:
    """Results of a cross-validation and the rows of its folds."""
    rows: list[dict[str, np.ndarray]] = []
    return crossvalidate(lambda: Task(head()), data, trainer=QUIET, folder=folder, rows=rows, **options), rows


@pytest.mark.parametrize("seen", [1, 3])
def test_a_model_that_has_seen_k_raters_is_worth_k(seen: int) -> None:
    data = VotedRows(items=3000, seen=seen, folds=2, val_fraction=0.2)
    results, _ = measured(data)
    raters = results["raters"]
    assert raters["low"] < seen < raters["high"] and raters["worth"] == pytest.approx(seen, abs=0.35)
    # A model that is k raters and a vote more is k + 1 raters.
    np.testing.assert_allclose(raters["with_model"][: 6 - seen], raters["power"][seen:6], atol=0.01)
    assert raters["with_model"][0] == pytest.approx(raters["nll"]) and raters["most"] == len(raters["power"]) - 1


def test_a_model_better_than_all_raters(tmp_path: Path) -> None:
    data = VotedRows(items=600, least=2, most=3, seen=50, folds=2, val_fraction=0.2)
    results, _ = measured(data, tmp_path, folds=[0], key={"command": "a"})
    again, _ = measured(data, tmp_path, folds=[0], key={"command": "a"})
    raters = results["raters"]
    assert again["raters"] == raters == again["folds"][0]["raters"]
    print_table(again, LABELS)
    assert raters["worth"] is None and worth_in_words(raters).startswith(f"more than {raters['most']} raters")


def test_folds_and_pooled_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = VotedRows(folds=3, val_fraction=0.2, subjects=60)
    results, parts = measured(data, tmp_path)
    entries = [fold["raters"] for fold in results["folds"]]
    for number, (fold, rows) in enumerate(zip(results["folds"], parts)):
        data.select_fold(number)
        counts, prediction = data.counts(rows["index"]), rows["prediction"]
        assert fold["metrics"]["vote_nll"] == pytest.approx(vote_nll(prediction, counts).mean())
        weighted = np.average(vote_nll(prediction, counts), weights=counts.sum(1))
        assert fold["metrics"]["vote_nll_weighted"] == pytest.approx(weighted)
        assert fold["metrics"]["majority_accuracy"] == pytest.approx(majority_accuracy(prediction, counts))
        assert fold["metrics"]["kl_bias"] == pytest.approx(entropy_bias(counts).mean())
        # The combiner is that of the fold's training set, and s that of its validation set.
        combiner = DirichletMixture.fit(data.counts(data.split.train), data.groups[data.split.train])
        held = data.split.val
        model_votes = combiner.model_votes(data.features[held].numpy(), data.counts(held))
        expected = rater_equivalence(prediction, counts, combiner, model_votes=model_votes, groups=rows["group"])
        assert fold["raters"]["worth"] == pytest.approx(expected.worth, rel=1e-5)
        assert (fold["raters"]["low"], fold["raters"]["high"]) == pytest.approx(expected.interval, rel=1e-5)
        np.testing.assert_allclose(fold["raters"]["power"], expected.curve, rtol=1e-6)
        np.testing.assert_allclose(fold["raters"]["with_model"], expected.with_model, rtol=1e-4)
        assert fold["raters"]["alpha"] == pytest.approx(krippendorff_alpha(counts, LABELS))
    assert results["raters"]["items"] >= max(entry["items"] for entry in entries)
    assert min(each["nll"] for each in entries) <= results["raters"]["nll"] <= max(each["nll"] for each in entries)
    assert {*NAMES} <= results["pooled"].keys() & results["mean"].keys()
    assert json.loads((tmp_path / "results.json").read_text())["raters"]["power"] == results["raters"]["power"]
    print_table(results, LABELS)
    assert results["raters"]["labels"] == "3 nominal labels" and results["raters"]["components"] == [1]
    assert results["raters"]["power_error"] == [0] * len(results["raters"]["power"])
    assert f"items with more than {results['raters']['most']} votes for 3 nominal labels (survey equi" in (
        conditions_in_words(results["raters"])
    )
    words = f"The model is worth {worth_in_words(results['raters'])} on {conditions_in_words(results['raters'])}"
    card = (tmp_path / "model_card.md").read_text()
    assert f"{words}; Krippendorff's alpha of the votes is 0." in capsys.readouterr().out
    assert f"{words}; Krippendorff's alpha" in card and "| vote_nll |" in card
    for folder in (tmp_path, *(tmp_path / f"fold_{number}" for number in range(3))):
        assert (folder / "charts" / "rater_equivalence.png").is_file()


def test_finished_folds_are_read_and_tested_again(tmp_path: Path) -> None:
    data = VotedRows(folds=2, val_fraction=0.2)
    first, _ = measured(data, tmp_path, key={"command": "a"})
    again, _ = measured(data, tmp_path, key={"command": "a"})
    assert again["raters"] == first["raters"] and again["folds"][0]["raters"] == first["folds"][0]["raters"]
    # A checkpoint has the number of votes of a prediction.
    checkpoint = tmp_path / "fold_1" / "checkpoints" / "last.ckpt"
    task = Task.load_from_checkpoint(checkpoint)
    data.select_fold(1)
    held = data.split.val
    fitted = data.combiner.model_votes(data.features[held].numpy(), data.counts(held))
    assert task.model_votes == pytest.approx(fitted, rel=1e-5)


def test_folds_with_combiners_of_several_components(tmp_path: Path) -> None:
    """Rows carry the curves of their fold, so that pooled results compare each item under its own combiner."""
    rng, parts = np.random.default_rng(0), []
    for size in (1, 2, 3):
        combiner = DirichletMixture(np.full(size, 1 / size), rng.uniform(0.2, 3, (size, 3)))
        counts = rng.multinomial(7, [0.5, 0.3, 0.2], 20).astype(float)
        rows = {"prediction": rng.dirichlet(np.ones(3), 20), "target": counts / 7, "votes": np.full(20, 7.0)}
        parts.append(rows | power_columns(SimpleNamespace(combiner=combiner), rows, 1.5))
        one = compare_with_raters(parts[-1], LABELS)
        assert one is not None and one["components"] == [size] and one["items"] == 20 and one["most"] == 6
        equivalence = rater_equivalence(rows["prediction"], counts, combiner, model_votes=1.5)
        np.testing.assert_allclose(one["power"], equivalence.curve)
        np.testing.assert_allclose(one["with_model"], equivalence.with_model)
        assert one["nll"] == pytest.approx(equivalence.nll) and one["low"] == pytest.approx(equivalence.interval[0])
        assert (np.array(one["power_error"])[4:] > 0).all() == (size > 1)
    pooled = compare_with_raters(
        {name: np.concatenate([rows_of_fold[name] for rows_of_fold in parts]) for name in parts[0]}, LABELS
    )
    assert pooled is not None and pooled["components"] == [1, 2, 3] and pooled["items"] == 60
    np.testing.assert_allclose(
        pooled["power"], np.mean([rows_of_fold["power"][:, :7] for rows_of_fold in parts], (0, 1))
    )
    assert "mixtures of 1 to 3 Dirichlets" in conditions_in_words(pooled)
    assert "one Dirichlet" in conditions_in_words({"items": 3, "most": 2})  # results of ldl 0.2
    assert charts.rater_equivalence(tmp_path / "pooled.png", pooled).is_file()


def test_weights_of_rows_count_in_vote_metrics() -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 4, (20, 3)).astype(float) + [1, 0, 0]
    rows = {
        "prediction": rng.dirichlet(np.ones(3), 20),
        "target": counts / counts.sum(1, keepdims=True),
        "votes": counts.sum(1),
    }
    twice = {name: np.concatenate([column, column[:7]]) for name, column in rows.items()}
    weighted = row_metrics({**rows, "weight": np.where(np.arange(20) < 7, 2.0, 1.0)}, LABELS)
    expected = row_metrics(twice, LABELS)
    assert {name: weighted[name] for name in NAMES} == pytest.approx({name: expected[name] for name in NAMES})


def test_without_votes_nothing_is_reported(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "moods.npz", features=rng.normal(size=(30, 4)), labels=rng.dirichlet(np.ones(3), 30))
    results, parts = measured(TabularLDL(path=str(tmp_path / "moods.npz"), folds=2), tmp_path / "run", MeanPredictor)
    assert "raters" not in results and not {*NAMES} & results["mean"].keys() and "power" not in parts[0]
    assert not (tmp_path / "run" / "charts" / "rater_equivalence.png").exists()


def test_votes_that_allow_no_comparison() -> None:
    data = VotedRows(items=60, least=1, most=1, folds=2)
    with pytest.warns(UserWarning, match="the comparison with raters is left out: none of 2[47] items has two votes"):
        results, _ = measured(data)
    assert "raters" not in results and results["mean"]["vote_nll"] > 0


def test_predictions_that_are_not_finite_are_not_compared() -> None:
    counts = np.full((4, 3), 2.0)
    rows = {"prediction": np.full((4, 3), np.nan), "target": counts / 6, "votes": counts.sum(1)}
    data = VotedRows(folds=2)
    data.setup()
    with pytest.warns(UserWarning, match="left out: row 0 of the predictions is no distribution"):
        assert power_columns(data, rows, None) == {}
    with pytest.warns(UserWarning, match="left out: dict has no combiner of votes"):
        assert power_columns({}, rows, None) == {}


def test_without_validation_rows_there_is_no_second_curve() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*val_fraction.*")
        results, parts = measured(VotedRows(folds=2, val_fraction=0.0))
    assert results["raters"]["with_model"] is None and "with_model" not in parts[0]


@pytest.mark.slow
def test_two_processes_report_what_one_does(tmp_path: Path) -> None:
    options = ["--data", "fakes.rater_votes.VotedRows", "--data.val_fraction", "0.2", "--data.subjects", "70"]
    options += ["--model.head", "fakes.rater_votes.Seen", "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"]
    options += ["--data.batch_size", "23", "--trainer.enable_progress_bar", "false", "--trainer.precision", "64-true"]
    one, other = run_in_one_and_two(options, tmp_path)
    assert_close(one["mean"], other["mean"])
    assert_close(one["raters"], other["raters"])
    for table in ("classes.csv", "confusion.csv"):
        assert (tmp_path / "one" / table).read_text() == (tmp_path / "two" / table).read_text()
    saved = [torch.load(tmp_path / name / "checkpoints" / "last.ckpt", weights_only=True) for name in ("one", "two")]
    assert saved[0]["ldl"]["model_votes"] == pytest.approx(saved[1]["ldl"]["model_votes"], rel=1e-4)
