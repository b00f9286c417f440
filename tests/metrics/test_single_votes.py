"""Metrics of single votes: scores against plain loops, theorems, and runs with and without a model of raters."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes.forks import run_in_one_and_two
from fakes.processes import assert_close
from fakes.rated_items import LABELS, ORDERED, biased, rate, write_items
from torch import Tensor

from ldl.annotations import vote_nll
from ldl.errors import LDLError
from ldl.heads import MeanPredictor, Softmax
from ldl.jobs.crossval import crossvalidate
from ldl.labels import LabelSpace
from ldl.metrics.single_votes import score_votes
from ldl.metrics.stage import row_metrics
from ldl.run.results import print_table
from ldl.task import Task

BIAS = np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 2], [-1, -1, 0]])
QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 3}


def some_votes(labels: LabelSpace, items: int = 40, most: int = 5, seed: int = 0) -> tuple[Tensor, Tensor]:
    """A distribution (N, V, C) for each vote, in float64, and 1 to V votes (N, V) on each item, padded."""
    generator = torch.Generator().manual_seed(seed)
    shape = items, most, len(labels)
    prediction = torch.randn(shape, generator=generator, dtype=torch.float64).mul(2).softmax(-1)
    vote = torch.randint(len(labels), (items, most), generator=generator)
    votes = torch.randint(1, most + 1, (items, 1), generator=generator)
    return prediction, torch.where(torch.arange(most) < votes, vote, -1)


def plain_scores(prediction: np.ndarray, vote: np.ndarray, axis: list[float] | None) -> list[list[float]]:
    """The definitions, for distributions (V, C) and votes (V,) on one item: three scores for each vote."""
    rows = []
    for p, label in zip(prediction[vote >= 0], vote[vote >= 0]):
        row = [-np.log(p[label]), float(p.argmax() != label)]
        if axis is not None:
            median = next(value for value, below in zip(axis, p.cumsum()) if below >= 0.5)
            row.append(abs(median - axis[label]) / (max(axis) - min(axis)))
        rows.append(row)
    return rows


@pytest.mark.parametrize("labels", [LABELS, ORDERED, LabelSpace.ordinal([0, 1, 10])], ids=["nominal", "even", "uneven"])
@pytest.mark.parametrize("weighted", [False, True])
def test_metrics_are_their_definitions(labels: LabelSpace, weighted: bool) -> None:
    prediction, vote = some_votes(labels)
    axis = list(labels.axes[0]) if labels.kind == "ordinal" else None
    plain = [plain_scores(p, v, axis) for p, v in zip(prediction.numpy(), vote.numpy())]
    means = np.array([np.mean(rows, 0) for rows in plain])
    votes = np.array([len(rows) for rows in plain])
    scores = score_votes(prediction, vote, labels)
    np.testing.assert_allclose(scores, np.hstack([votes[:, None], means]), rtol=1e-12)
    weight = np.arange(1, 41) / 20 if weighted else np.ones(40)
    shares = np.full((40, len(labels)), 1 / len(labels))
    rows = {"prediction": shares, "target": shares, "rater_scores": scores.numpy(), "weight": weight}
    if axis is not None:
        rows |= {"predicted_value": weight, "value": weight}
    measured = row_metrics(rows, labels)
    assert measured["rater_nll"] == pytest.approx(np.average(means[:, 0], weights=votes * weight))
    assert measured["rater_error"] == pytest.approx(np.average(means[:, 1], weights=weight))
    assert ("rater_distance" in measured) == (axis is not None)
    if axis is not None:
        assert measured["rater_distance"] == pytest.approx(np.average(means[:, 2], weights=weight))


def test_a_perfect_model_of_raters_is_never_wrong() -> None:
    _, vote = some_votes(ORDERED)
    certain = torch.nn.functional.one_hot(vote.clamp_min(0), 4).double()
    assert score_votes(certain, vote, ORDERED)[:, 1:].abs().max() == 0
    extremes = torch.where(vote >= 0, 3 * (vote > 1), -1)
    opposite = torch.nn.functional.one_hot(3 - extremes.clamp_min(0), 4).double()
    assert (score_votes(opposite, extremes, ORDERED)[:, 2:] == 1).all()


def test_a_label_without_probability_is_floored() -> None:
    scores = score_votes(torch.tensor([[[1.0, 0, 0]]]), torch.tensor([[2]]), LABELS)
    assert scores.tolist() == [[1, pytest.approx(-np.log(1e-12)), 1]]


def test_items_without_votes_do_not_count() -> None:
    prediction, vote = some_votes(ORDERED)
    silent = torch.cat([vote, torch.full((10, 5), -1)])
    rows = [
        score_votes(prediction[:1, :1].expand(len(part), 1, 4), part, ORDERED).numpy() for part in (vote, silent, vote)
    ]
    assert (rows[1][40:] == 0).all()
    shares = np.full((50, 4), 0.25)
    measured = [
        row_metrics(
            {"prediction": shares[:count], "target": shares[:count], "value": np.ones(count), "rater_scores": scores}
            | {"predicted_value": np.ones(count)},
            ORDERED,
        )
        for count, scores in zip((40, 50), rows)
    ]
    for name in ("rater_nll", "rater_error", "rater_distance"):
        assert measured[0][name] == pytest.approx(measured[1][name])


def test_raters_alike_give_the_nll_of_the_votes() -> None:
    """A distribution of the item for all raters: then the metrics are those of the counts."""
    prediction, vote = some_votes(LABELS)
    shared = prediction[:, :1]
    scores = score_votes(shared, vote, LABELS)
    torch.testing.assert_close(scores, score_votes(shared.expand(-1, 5, -1), vote, LABELS))
    counts = np.stack([(vote == label).sum(1).numpy() for label in range(3)], 1).astype(float)
    np.testing.assert_allclose(scores[:, 1], vote_nll(shared[:, 0].numpy(), counts), rtol=1e-12)
    votes = counts.sum(1)
    rows = {"prediction": shared[:, 0].numpy(), "target": counts / votes[:, None], "votes": votes}
    measured = row_metrics({**rows, "rater_scores": scores.numpy()}, LABELS)
    assert measured["rater_nll"] == pytest.approx(measured["vote_nll_weighted"])
    chosen = counts[np.arange(40), shared[:, 0].argmax(-1)] / votes
    assert measured["rater_error"] == pytest.approx(1 - chosen.mean())


def made_data(folder: Path, **options: Any) -> Any:
    return write_items(rate(biased(BIAS), items=120, each=3), folder, **options)


def run(data: Any, **options: Any) -> tuple[dict[str, Any], list[dict[str, np.ndarray]]]:
    rows: list[dict[str, np.ndarray]] = []

    def make() -> Task:
        return Task(Softmax(), optimizer=lambda groups: torch.optim.Adam(groups, lr=0.1), **options)

    return crossvalidate(make, data, trainer={**QUIET, "max_epochs": 8}, rows=rows, folds=[0]), rows


def test_both_kinds_of_models_are_compared_on_the_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = made_data(tmp_path, folds=2)
    of_items, _ = run(data)
    of_raters, rows = run(data, raters="bias")
    for results in (of_items, of_raters):
        assert {"rater_nll", "rater_error"} <= results["pooled"].keys() & results["mean"].keys()
        assert "rater_distance" not in results["mean"]
        assert results["pooled"]["manhattan"] == pytest.approx(2 * results["pooled"]["sorensen"], rel=1e-6)
    assert of_items["mean"]["rater_nll"] == pytest.approx(of_items["mean"]["vote_nll_weighted"], rel=1e-5)
    assert of_raters["mean"]["rater_nll"] < of_items["mean"]["rater_nll"] - 0.05
    assert of_raters["mean"]["rater_error"] < of_items["mean"]["rater_error"] - 0.05
    votes, nll, _ = rows[0]["rater_scores"].T
    assert of_raters["mean"]["rater_nll"] == pytest.approx(np.average(nll, weights=votes))
    print_table(of_raters, data.labels)
    printed = capsys.readouterr().out
    assert "\n rater_nll " in printed and "\n rater_error " in printed and "manhattan" not in printed


@pytest.mark.parametrize("calibrate", [False, True])
def test_each_vote_is_predicted_for_its_rater(calibrate: bool, tmp_path: Path) -> None:
    """The scores of a run are those of ``as_rater``, one rater at a time, with the temperature of the run."""
    data = made_data(tmp_path)
    tasks = []

    def make() -> Task:
        tasks.append(Task(Softmax(), raters="confusion", calibrate=calibrate, rater_shrinkage=1.0))
        return tasks[-1]

    rows: list[dict[str, np.ndarray]] = []
    crossvalidate(make, data, trainer=QUIET, rows=rows, folds=[0])
    task = tasks[-1].eval()
    assert task.raters is not None and (task.temperature != 1) == calibrate
    batch = next(iter(data.test_dataloader()))
    task.trainer = None
    columns = []
    for place in range(batch["rater"].shape[1]):
        output = task.predict_step({**batch, "as_rater": batch["rater"][:, place]}, 0)
        assert "rater_scores" not in output
        columns.append(output["prediction"])
    scores = task.predict_step(batch, 0)["rater_scores"]
    torch.testing.assert_close(scores, score_votes(torch.stack(columns, 1), batch["vote"], data.labels))
    np.testing.assert_allclose(rows[0]["rater_scores"][: len(scores)], scores.detach(), rtol=1e-5)


def fit(data: Any, **options: Any) -> None:
    trainer = pl.Trainer(**{**QUIET, "max_epochs": 1}, logger=False, enable_checkpointing=False)
    trainer.fit(Task(Softmax(), **options), datamodule=data)


def test_votes_are_in_batches_that_need_them(tmp_path: Path) -> None:
    data = made_data(tmp_path)
    fit(data)
    for loader in (data.val_dataloader(), data.test_dataloader()):
        batch = next(iter(loader))
        assert (batch["rater"] == -1).all() and (batch["vote"] >= 0).all()
    assert not {"rater", "vote"} & next(iter(data.train_dataloader())).keys()
    fit(data, raters="bias")
    for loader in (data.train_dataloader(), data.test_dataloader()):
        assert (next(iter(loader))["rater"] >= 0).all()
    fit(data)
    assert "vote" not in next(iter(data.train_dataloader()))


def test_votes_that_are_not_those_of_the_instances_are_left_out(tmp_path: Path) -> None:
    data = made_data(tmp_path)
    data.setup()
    data.annotations = data.annotations.take(np.arange(7))
    with pytest.warns(
        UserWarning, match="metrics of single votes are left out: TabularLDL has 120 instances and votes"
    ):
        fit(data)
    assert "vote" not in next(iter(data.test_dataloader()))
    with pytest.raises(LDLError, match="has 120 instances and votes on 7"):
        fit(data, raters="bias")


def test_ordinal_votes_have_a_distance_and_heads_that_are_fitted_too(tmp_path: Path) -> None:
    data = made_data(tmp_path, folds=2, label_order=["a", "b", "c"])
    rows: list[dict[str, np.ndarray]] = []
    results = crossvalidate(lambda: Task(MeanPredictor()), data, trainer={**QUIET, "max_epochs": 1}, rows=rows)
    found = results["folds"][0]["metrics"]
    counts = data.counts(rows[0]["index"])
    median = (rows[0]["prediction"].cumsum(1) >= 0.5).argmax(1)
    distance = (counts * np.abs(median[:, None] - np.arange(3))).sum(1) / counts.sum(1) / 2
    assert found["rater_distance"] == pytest.approx(distance.mean())
    gaps = np.abs((rows[0]["prediction"] - counts / counts.sum(1, keepdims=True)).cumsum(1)).sum(1)
    assert found["wasserstein"] == pytest.approx(gaps.mean(), rel=1e-5)
    scores = np.concatenate([of_fold["rater_scores"] for of_fold in rows])
    assert results["pooled"]["rater_distance"] == pytest.approx(scores[:, 3].mean())


@pytest.mark.slow
def test_two_processes_measure_what_one_does(tmp_path: Path) -> None:
    data = made_data(tmp_path)
    options = ["--data", "TabularLDL", "--data.path", data.path, "--data.votes", str(data.votes), "--data.folds", "4"]
    options += ["--model.head", "Softmax", "--model.raters", "bias", "--trainer.max_epochs", "2"]
    options += ["--data.val_fraction", "0.25", "--data.batch_size", "11", "--trainer.precision", "64-true"]
    options += ["--trainer.enable_progress_bar", "false", "--wandb.mode", "disabled", "--trainer.accelerator", "cpu"]
    one, other = run_in_one_and_two(options, tmp_path)
    assert "rater_nll" in one["mean"]
    assert_close(one["mean"], other["mean"])
    with (tmp_path / "one" / "metrics.csv").open() as file:
        assert any(row["val_rater_nll"] for row in csv.DictReader(file))
