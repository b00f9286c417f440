"""What a run reports of its model of raters: raters.csv, chart, results.json and card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import pytorch_lightning as pl
import torch
from fakes.forks import Ranks
from fakes.rated_items import LABELS, ORDERED, biased, rate, write_items

from ldl.annotations import SingleVotes
from ldl.data import TabularLDL
from ldl.heads import Softmax
from ldl.jobs.crossval import crossvalidate
from ldl.labels import LabelSpace
from ldl.raters import Raters, RaterTable
from ldl.raters.description import tabulate_raters
from ldl.reports.files import write_table
from ldl.reports.raters import rater_model_in_words, summarize_raters
from ldl.reports.rows import Report
from ldl.run.training import test as run_test
from ldl.task import Task

pytestmark = pytest.mark.usefixtures("pixel_charts")
QUIET: dict[str, Any] = {
    "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu", "max_epochs": 2,
}  # fmt: skip
BIAS = np.random.default_rng(0).normal(size=(6, 3))


def made_data(folder: Path, labels: int = 3, **options: Any) -> TabularLDL:
    bias = np.random.default_rng(0).normal(size=(6, labels))
    return write_items(rate(biased(bias), items=60, labels=labels), folder, **options)


def made_task(**options: Any) -> Task:
    return Task(Softmax(), raters="bias", **options)


def expected(task: Task, data: TabularLDL) -> pd.DataFrame:
    """The table from the whole training set at once."""
    assert task.raters is not None and data.single_votes is not None
    rows = np.sort(data.split.train)
    p = task.eval().head(data.inputs(rows, rows, train=False)).detach()
    votes = data.single_votes.take(rows)
    assert [str(name) for name in votes.names] == list(task.raters.names)
    return tabulate_raters(task.raters, task.labels, p, votes, task.temperature)


def test_the_folds_of_a_cross_validation_have_their_raters(tmp_path: Path) -> None:
    data = made_data(tmp_path, folds=2)
    run = tmp_path / "run"
    results = crossvalidate(made_task, data, trainer=QUIET, folder=run)
    for number in range(2):
        data.select_fold(number)
        task = Task.load_from_checkpoint(run / f"fold_{number}" / "checkpoints" / "last.ckpt")
        table, wanted = pd.read_csv(run / f"fold_{number}" / "raters.csv"), expected(task, data)
        pd.testing.assert_frame_equal(table, wanted, rtol=1e-4, atol=1e-5, check_dtype=False)
        assert (run / f"fold_{number}" / "charts" / "raters.png").is_file()
        assert task.raters is not None
        entry = results["folds"][number]["rater_model"]
        for name, value in summarize_raters(task.raters, wanted).items():
            assert entry[name] == (value if name == "kind" else pytest.approx(value, rel=1e-4, abs=1e-5))
        assert json.loads((run / f"fold_{number}" / "results.json").read_text())["folds"][0]["rater_model"] == entry
    card = (run / "model_card.md").read_text()
    assert f"## Raters\n\n{rater_model_in_words(results['folds'], LABELS)}" in card
    assert "model of 6 raters (`bias`, strength of shrinkage" in card and 'rater="NAME"' in card


def test_votes_that_are_not_those_of_training_are_left_out(tmp_path: Path) -> None:
    """Also with raters in another order, and with raters unknown to the model."""
    data = made_data(tmp_path)
    trainer = pl.Trainer(**QUIET, logger=False, enable_checkpointing=False, use_distributed_sampler=False)
    task, report = made_task(), Report(tmp_path / "run", draw=False)
    trainer.fit(task, datamodule=data)
    trainer.callbacks.append(report)  # type: ignore[attr-defined]
    entry = run_test(trainer, task, data)
    wanted = expected(task, data)
    assert report.rater_table is not None and entry["rater_model"]["trained"] == 6
    pd.testing.assert_frame_equal(report.rater_table, wanted, rtol=1e-4, atol=1e-5)
    votes = pd.read_csv(tmp_path / "votes.csv")
    more = votes[votes["rater"] == "r0"].assign(rater="new")
    pd.concat([more, votes[::-1]]).to_csv(tmp_path / "votes.csv", index=False)
    other = TabularLDL(path=data.path, votes=data.votes, folds=4, val_fraction=0.25)
    run_test(trainer, task, other)
    pd.testing.assert_frame_equal(report.rater_table, wanted, rtol=1e-4, atol=1e-5)
    other.trained_elsewhere = True
    with pytest.warns(UserWarning, match="raters.csv is left out: the data do not have the training votes of the mod"):
        run_test(trainer, task, other)
    assert report.rater_table is None and "rater_model" not in report.entries(task)


def test_a_task_without_raters_has_none(tmp_path: Path) -> None:
    results = crossvalidate(lambda: Task(Softmax()), made_data(tmp_path), [0], trainer=QUIET, folder=tmp_path / "run")
    assert "rater_model" not in results["folds"][0] and not list((tmp_path / "run").rglob("raters.*"))
    assert "## Raters" not in (tmp_path / "run" / "model_card.md").read_text()


def _in_two(data: TabularLDL, folder: Path) -> None:
    pl.seed_everything(0, verbose=False)
    two = {"devices": 2, "strategy": "ddp", "use_distributed_sampler": False, "precision": "64-true"}
    results = crossvalidate(made_task, data, [0], trainer={**QUIET, **two}, folder=folder / "run")
    assert "rater_model" in results["folds"][0]  # in both processes


@pytest.mark.slow
def test_two_processes_write_the_same_raters(tmp_path: Path) -> None:
    data = made_data(tmp_path, batch_size=11)  # before the processes, which would read what another one writes
    ranks = Ranks(lambda: _in_two(data, tmp_path), tmp_path / "log.txt")
    assert ranks.wait() == 0, (tmp_path / "log.txt").read_text()[-3000:]
    assert ranks.end(), "processes stayed"
    data.setup()
    task = Task.load_from_checkpoint(tmp_path / "run" / "fold_0" / "checkpoints" / "last.ckpt")
    table = pd.read_csv(tmp_path / "run" / "fold_0" / "raters.csv")
    pd.testing.assert_frame_equal(table, expected(task.float(), data), rtol=1e-4, atol=1e-5, check_dtype=False)


def described(labels: LabelSpace, strengths: list[float]) -> tuple[Raters, pd.DataFrame]:
    """Two raters with votes and one without, all like the mean rater."""
    names = np.array(["=1+1", "b", "c"], object)
    raters = Raters("bias", labels, RaterTable(list(names), np.array([1, 1, 0])), strengths)
    votes = SingleVotes(np.array([0, 1]), np.array([0, 1]), np.array([0, 1]), names)
    p = torch.full((2, len(labels)), 1 / len(labels))
    return raters, tabulate_raters(raters, labels, p, votes)


def test_unknown_numbers_are_empty_and_names_are_no_formulas(tmp_path: Path) -> None:
    _, table = described(LABELS, [1.0])
    write_table(tmp_path / "raters.csv", table, quote=True)
    header, first, *_ = (tmp_path / "raters.csv").read_text().splitlines()
    assert header.startswith("rater,votes,bias:a,bias_lower_90:a,bias_upper_90:a,") and first.startswith("'=1+1,1,")
    assert "nan" not in first and first.split(",")[header.split(",").index("agreement")] == ""


@pytest.mark.parametrize(
    ("strengths", "validation", "words"),
    [([1.0], 5, "shrinkage 1, fixed)"), ([1.0, 4.0], 5, "4, chosen by validation)"), ([1.0, 4.0], 0, "4, without val")],
)
@pytest.mark.parametrize("labels", [LABELS, ORDERED])
def test_the_card_in_words(labels: LabelSpace, strengths: list[float], validation: int, words: str) -> None:
    raters, table = described(labels, strengths)
    summary = summarize_raters(raters, table)
    assert summary["raters"] == 3 and summary["trained"] == 2
    text = rater_model_in_words([{"n_val": validation, "rater_model": summary}], labels)
    assert "model of 2 raters (`bias`" in text and words in text
    assert ("shift of" in text) == (labels.kind == "ordinal")
