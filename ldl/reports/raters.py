"""What a run reports of its model of raters: ``raters.csv``, and its summary in ``results.json`` and the card."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytorch_lightning as pl
import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor

from ldl.annotations.votes import SingleVotes
from ldl.batch import global_rows
from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.data.loader import serve
from ldl.labels import LabelSpace
from ldl.raters import Raters
from ldl.raters.description import tabulate_raters
from ldl.raters.table import find_raters
from ldl.reports.files import as_text


def describe_model(trainer: pl.Trainer, task: Any) -> pd.DataFrame | None:
    """Return the table of the raters of a task after a test (``ldl.raters.description``), from its training votes.

    All processes call it, predict the training set together, and return the same table.

    Returns:
        The table; None without a model of raters, and, with a warning, if the training votes are unknown.
    """
    data: Any = getattr(trainer, "datamodule", None)
    if task.raters is None:
        return None
    if not isinstance(data, LDLDataModule) or data.trained_elsewhere or data.single_votes is None:
        rank_zero_warn("raters.csv is left out: the data do not have the training votes of the model")
        return None
    rows = np.sort(data.split.train)
    p = _predict_rows(trainer, task, data, rows)
    votes = _numbered_as(data.single_votes.take(rows), task.raters)
    return tabulate_raters(task.raters, task.labels, p, votes, task.temperature)


@torch.no_grad()
def _predict_rows(trainer: pl.Trainer, task: Any, data: LDLDataModule, rows: np.ndarray) -> Tensor:
    """Return the distributions (n, C) of the head, before those of raters, for rising ``rows`` (n,)."""
    collective, parts = current_collective(), []
    for batch in serve(data, rows, train=False):
        global_rows(batch, task.device, collective)
        batch = trainer.precision_plugin.convert_input(batch)
        batch = {name: column.to(task.device) for name, column in batch.items()}
        real = batch["weight"] > 0
        with trainer.precision_plugin.predict_step_context():
            p = task.head.predict(task.features(batch))[0]
        p = p.mean(1) if task.backbone.gives_members else p
        parts.append((batch["index"][real], p[real].float()))
    index, p = (torch.cat(collective.gather(torch.cat(column))) for column in zip(*parts))
    return p[index.argsort()]


def _numbered_as(votes: SingleVotes, raters: Raters) -> SingleVotes:
    """Return the votes of the raters of a model, with its numbers of them."""
    numbers = find_raters(votes.names, raters.names)[votes.rater]
    kept = numbers >= 0
    return SingleVotes(votes.item[kept], numbers[kept], votes.label[kept], np.array(raters.names, object))


def summarize_raters(raters: Raters, table: pd.DataFrame) -> dict[str, Any]:
    """Return the entry ``rater_model`` of a fold in ``results.json``.

    Its keys are the ``kind`` of model; the numbers of ``raters`` and of ``trained`` ones, with training votes; the
    ``strength`` of shrinkage, and how many ``candidates`` validation chose it from; and ``range``, the smallest and
    largest estimate of a trained rater's ``shift`` or of a difference of probability, and of the ``informativeness``.
    """
    trained = table[table["votes"] > 0]
    differs = trained[[name for name in table if name == "shift" or name.startswith("bias:")]]
    return {
        "kind": raters.kind,
        "raters": len(table),
        "trained": len(trained),
        "strength": raters.strengths[raters.chosen],
        "candidates": len(raters.strengths),
        "range": [float(differs.min(axis=None)), float(differs.max(axis=None))],
        "informativeness": [float(trained["informativeness"].min()), float(trained["informativeness"].max())],
    }


def rater_model_in_words(folds: list[dict[str, Any]], labels: LabelSpace) -> str:
    """Return the paragraph of a card on the model of raters, from the folds of ``results.json`` that have one."""
    entries = [fold["rater_model"] for fold in folds]
    first = entries[0]
    strengths = ", ".join(dict.fromkeys(f"{entry['strength']:g}" for entry in entries))
    chosen = "chosen by validation" if all(fold["n_val"] for fold in folds) else "without validation"
    if first["candidates"] == 1:
        chosen = "fixed"
    low = min(entry["range"][0] for entry in entries)
    high = max(entry["range"][1] for entry in entries)
    unit = f" {as_text(labels.unit)}" if labels.unit else ""
    differs = f"a shift of {low:.2g} to {high:.2g}{unit} of the expectation"
    if labels.kind != "ordinal":
        differs = f"differences of probability of {low:.2g} to {high:.2g}"
    trained = max(entry["trained"] for entry in entries)
    return (
        f"Votes were learned with a model of {trained:,} raters (`{first['kind']}`, strength of shrinkage {strengths}, "
        f"{chosen}). Compared with the population, single raters have {differs}; `raters.csv` lists them with "
        "intervals. Predictions are those of the population, in which each rater counts equally. For one rater, use "
        '`predict(inputs, rater="NAME")`, or a column `rater` in the table of `--stage predict`.'
    )
