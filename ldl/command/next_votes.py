"""Next votes: which items of a trained model's data another annotator should label, for ``ldl votes --next``."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ldl.annotations import DirichletMixture, NextVotes, expected_gain, rank_next
from ldl.annotations.mixture import combiner_in_words
from ldl.annotations.votes import spellings
from ldl.checkpoint import OPTIONS_KEY, read_checkpoint
from ldl.command.command_line import parse_anew
from ldl.command.options import check_replaceable
from ldl.data.annotated import Annotated
from ldl.data.images.listed import ImageLDL
from ldl.data.names import matching
from ldl.data.tables.tabular import TabularLDL
from ldl.errors import LDLError, some
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.reports.files import write_csv
from ldl.run.output import silence
from ldl.tables import open_named
from ldl.tables.entries import is_frame

SHOWN = 10
"""Items that are printed."""
BEGINS = "item,votes,gain,"
"""Beginning of the file of the ranked items."""


@dataclass(frozen=True)
class TrainedRun:
    """A trained model: a run, all folds of a cross-validation, or a checkpoint alone.

    Attributes:
        checkpoints: Its checkpoints, one for each fold.
        held_out: Predictions of test items, with the columns ``name`` and ``prediction:NAME`` of ``predictions.csv``;
            empty for a checkpoint alone, and if items have no names.
        folds: Whether the checkpoints are folds of a cross-validation.
    """

    checkpoints: list[Path]
    held_out: pd.DataFrame
    folds: bool = False

    @classmethod
    def find(cls, run: Path) -> TrainedRun:
        """Return the model in a run directory or a checkpoint. Raises LDLError."""
        if run.is_file():
            return cls([run], pd.DataFrame())
        folds = sorted(run.glob("fold_*"), key=lambda folder: (len(folder.name), folder.name))
        folders = folds or [run]
        checkpoints = [folder / "checkpoints" / "last.ckpt" for folder in folders]
        if missing := [path for path in checkpoints if not path.is_file()]:
            raise LDLError(f"no checkpoint at {missing[0]}; give a run directory with a trained model, or a checkpoint")
        tables = [_read_predictions(folder / "predictions.csv") for folder in folders]
        checkpoints = [_tested(path) for path in checkpoints]
        return cls(checkpoints, pd.concat(tables, ignore_index=True), bool(folds))


@dataclass(frozen=True)
class Items:
    """The items of a run's data, with or without votes.

    Attributes:
        names: (M,) name of each item.
        instances: Their inputs, as ``Predictor`` takes them: a frame, an array, or a list of images.
        counts: (M, C) votes.
        groups: (M,) group of each item, or None.
        source: The table or list of the items.
    """

    names: np.ndarray
    instances: Any
    counts: np.ndarray
    groups: np.ndarray | None
    source: str

    def take(self, rows: np.ndarray) -> Any:
        """Return the inputs of some items."""
        if is_frame(self.instances):
            return self.instances.iloc[rows].reset_index(drop=True)
        return self.instances[rows] if isinstance(self.instances, np.ndarray) else [self.instances[r] for r in rows]


def next_votes(files: Sequence[Path], number: int, out: Path | None = None) -> None:
    """Print the items to send to another annotator, for ``ldl votes --next NUMBER RUN VOTES``; see :func:`rank_items`.

    Raises:
        LDLError: ``files`` are not a run and a file of votes, or an error of :func:`rank_items`.
    """
    if len(files) != 2:
        raise LDLError(
            f"--next takes a run and a file of votes, such as RUN votes.csv, and here are {len(files)} paths"
        )
    silence()
    print("\n".join(rank_items(files[0], files[1], number, out)))


def rank_items(run: Path, votes: Path, number: int, out: Path | None = None) -> list[str]:
    """Rank the items of a run's data by the expected gain of their next vote; return the report, line by line.

    The items are those of the table or list of the run, with and without votes. A vote on an item is predicted by the
    votes so far and the model together (:func:`ldl.annotations.expected_gain`). The combiner is fitted to the votes so
    far. The number of votes that a prediction counts as is fitted to the held-out items with votes, and is that of the
    checkpoint if there are none.

    Args:
        run: Run directory, of one run or of a cross-validation, or a checkpoint.
        votes: File of the votes so far, as given or below the data folder, read with the run's options of votes. If the
            votes of the run stand in its table, it may be a table with the same features.
        number: Number of items to choose.
        out: CSV file to write: item, votes so far, expected gain, and the distribution of the next vote.

    Raises:
        LDLError: The run, the votes or the number does not fit; ``out`` is another file.
    """
    if out is not None:
        check_replaceable(out, "--out", BEGINS)
    trained = TrainedRun.find(run)
    predictor = Predictor.from_checkpoint(trained.checkpoints[0])
    items = _read_items(trained.checkpoints[0], predictor, votes)
    prediction, held = _predict(trained, predictor, items)
    voted = items.counts.sum(1) > 0
    groups = None if items.groups is None else items.groups[voted]
    combiner = DirichletMixture.fit(items.counts[voted], groups)
    tested = held & voted
    if tested.any():
        model_votes: float | None = combiner.model_votes(prediction[tested], items.counts[tested])
        origin = f"fitted to {int(tested.sum())} held-out items"
    else:
        model_votes, origin = predictor.task.model_votes, "as in the checkpoint"
    if model_votes is None:
        raise LDLError(
            f"{run} has no predictions of held-out items with votes, and no number of votes that a prediction counts "
            "as; give the directory of a run with --stage crossval, or train with data.val_fraction above 0"
        )
    ranked = rank_next(items.counts, combiner, number, prediction, model_votes)
    usual = number * float(expected_gain(items.counts, combiner, prediction, model_votes).mean())
    lines = [
        f"items       {len(voted)} in {items.source}, {int((~voted).sum())} of them without a vote; "
        f"{items.counts.sum():,.0f} votes",
        f"model       {_origin(trained, held)}",
        f"posterior   {combiner_in_words([combiner.size])} of these votes; a prediction counts as {model_votes:.2f} "
        f"votes, {origin}",
        f"gain        one more vote on each of {number} items is expected to lower the NLL of a further vote by "
        f"{ranked.total:.4g} nats in total; on items at random by {usual:.4g}",
        *_table(ranked, items.names, predictor.labels),
    ]
    if out is None:
        return lines if number <= SHOWN else [*lines, f"            and {number - SHOWN} more; --out FILE writes all"]
    _write(out, ranked, items.names, predictor.labels)
    return [*lines, f"wrote       {out}, {number} items"]


def _tested(last: Path) -> Path:
    """Return the checkpoint that a run has tested: the last, or the best by validation. Raises LDLError."""
    options = read_checkpoint(last).get(OPTIONS_KEY, {})
    best = last.with_name("best.ckpt")
    return best if options.get("given", {}).get("select") == "best" and best.is_file() else last


def _read_predictions(path: Path) -> pd.DataFrame:
    """Return the names and predictions of the test items of a run; empty if there are none, or they have no names."""
    if not path.is_file() or (table := open_named(path)) is None or "name" not in table.header:
        return pd.DataFrame()
    columns = [name for name in table.header if name.startswith("prediction:")]
    frame = pd.DataFrame(table.numbers(columns), columns=columns)
    return frame.assign(name=spellings(table.texts(["name"])["name"]))


def _read_items(checkpoint: Path, predictor: Predictor, votes: Path) -> Items:
    """Return the items of the data of a checkpoint's run, with the votes of a file. Raises LDLError."""
    configuration = read_checkpoint(checkpoint).get(OPTIONS_KEY, {}).get("given")
    if not isinstance(configuration, dict):
        raise LDLError(f"{checkpoint} has no options of its run; train it with a later version of ldl")
    data = parse_anew(["-c", json.dumps(configuration)]).instantiate("data")
    if not isinstance(data, TabularLDL | ImageLDL):
        raise LDLError(
            f"{checkpoint} was trained on {type(data).__name__}, whose items have no votes; next votes need a model of "
            "TabularLDL or ImageLDL, or of a class of these"
        )
    file = data.find(str(votes))
    if not file.is_file():
        raise LDLError(f"no file of votes at {file}; correct the path, or the data folder, --data.root or LDL_DATA")
    data.unlabelled = "drop"
    task = predictor.task
    data.follow(task.labels, task.input_shape, task.preprocessing)
    return _rows(data, file, task.preprocessing or {}) if isinstance(data, TabularLDL) else _images(data, file)


def _rows(data: TabularLDL, votes: Path, preprocessing: dict[str, Any]) -> Items:
    """Return the rows of the table of a run. Raises LDLError."""
    data.in_memory = math.inf
    names = [column["name"] for column in preprocessing.get("encoding", ())] or preprocessing.get("features") or []
    table = open_named(votes)
    if data.votes is None and names and table is not None and set(names) <= set(table.header):
        data.path = str(votes)
    else:
        data.votes = str(votes)
    read = data.reader(data.target_key, normalize=data.normalize).read(data.file)
    if not is_frame(read.target):
        raise LDLError(f"{data.file}: labels are distributions, no votes; next votes need a model that learned votes")
    keys: Any = range(len(read.features)) if read.items is None else read.items
    long = read.votes is not None and read.votes.layout == "long" and read.items is not None
    item = read.votes.item if long and read.votes is not None else None
    counts, groups = _counts(data, read.target, keys, str(data.file), item, columns=read.votes, apart=read.apart)
    features = read.features
    if read.columns is not None and not is_frame(features):
        features = pd.DataFrame(features, columns=read.columns)
    return Items(spellings(keys), features, counts, read.groups if read.groups is not None else groups, str(data.file))


def _images(data: ImageLDL, votes: Path) -> Items:
    """Return the images in the list of a run. Raises LDLError."""
    data.votes = str(votes)
    listing = data.read()
    records, source = data.records_of(listing), listing.source
    apart = data.votes_apart(Path(source))
    counts, groups = _counts(data, listing.frame, records.files, source, listing.column, listing.spell, apart=apart)
    groups = groups if records.groups is None else records.groups
    return Items(np.array(records.files, dtype=object), records.paths(), counts, groups, source)


def _counts(
    data: Annotated, table: Any, keys: Sequence[Any], source: str, *arguments: Any, **columns: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the votes (M, C) on all items in the order of the model's labels, and groups (M,) or None.

    The arguments are those of :meth:`Annotated.annotate`. Raises LDLError.
    """
    annotations, rows = data.annotate(table, keys, source, *arguments, **columns)
    if not annotations.counted:
        raise LDLError(
            f"{source}: labels are shares, and the number of votes of each item is unknown; give counts, or name the "
            "column of the number with data.votes_column at the training"
        )
    labels = data.trained_labels
    assert labels is not None
    places = matching(list(map(str, annotations.labels.names)), labels)
    if places is None:
        raise LDLError(
            f"the votes have the labels {some(list(map(str, annotations.labels.names)))}, and the model has "
            f"{some(list(labels.names))}; give votes for the labels of training"
        )
    counts = np.zeros((len(keys), len(labels)))
    counts[rows] = annotations.counts[:, places]
    if annotations.groups is None:
        return counts, None
    groups = np.empty(len(keys), object)
    groups[rows] = annotations.groups
    return counts, groups


def _predict(trained: TrainedRun, predictor: Predictor, items: Items) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions (M, C), and whether each is held out (M,): of a model that was not trained on the item.

    Items of no test set are predicted by the mean over the checkpoints.
    """
    prediction, held = np.empty(items.counts.shape), np.zeros(len(items.names), bool)
    tested = trained.held_out
    if len(tested):
        columns = [f"prediction:{name}" for name in predictor.labels.names]
        if missing := [name for name in columns if name not in tested]:
            raise LDLError(f"the predictions.csv of the run has no column {missing[0]!r}; test the model again")
        place = pd.Index(tested["name"]).get_indexer(pd.Index(spellings(items.names), dtype=object))
        held = place >= 0
        prediction[held] = tested[columns].to_numpy(np.float64)[place[held]]
    rest = np.flatnonzero(~held)
    if len(rest):
        predictors = [predictor, *map(Predictor.from_checkpoint, trained.checkpoints[1:])]
        instances = items.take(rest)
        prediction[rest] = np.mean([each.predict(instances).distribution for each in predictors], 0, dtype=np.float64)
    return prediction / prediction.sum(1, keepdims=True), held


def _origin(trained: TrainedRun, held: np.ndarray) -> str:
    """Return what predicts the items, in words."""
    model = f"{len(trained.checkpoints)} folds" if trained.folds else str(trained.checkpoints[0])
    rest = int((~held).sum())
    if not rest:
        return f"{model}; every item is predicted by a model that was not trained on it"
    if trained.folds and len(trained.held_out):
        return f"{model}; {rest} of {len(held)} items are in no fold and get the mean prediction"
    if trained.folds:
        return (
            f"{model}; items have no names, so their held-out predictions cannot be found, and all get the mean "
            "prediction. If they were trained on, their gains are too low: name a column with data.item_column"
        )
    return (
        f"{model}; {rest} of {len(held)} items are not in its test set. If it was trained on their votes, their gains "
        "are too low: a run with --stage crossval predicts every item held out"
    )


def _table(ranked: NextVotes, names: np.ndarray, labels: LabelSpace) -> list[str]:
    """Return the first ranked items with the two likeliest labels of their next vote."""
    lines = [f"{'item':<24}  {'votes':>5}  {'gain':>7}  next vote"]
    for item, votes, gain, chance in list(zip(ranked.items, ranked.votes, ranked.gain, ranked.prediction))[:SHOWN]:
        likeliest = np.argsort(-chance, kind="stable")[:2]
        shown = ", ".join(f"{labels.names[label]} {chance[label]:.0%}" for label in likeliest)
        lines.append(f"{names[item]!s:<24}  {votes:>5g}  {gain:>7.4f}  {shown}")
    return lines


def _write(out: Path, ranked: NextVotes, names: np.ndarray, labels: LabelSpace) -> None:
    """Write the ranked items to a CSV file. Raises LDLError."""
    header = [*BEGINS.strip(",").split(","), *(f"next:{name}" for name in labels.names)]
    columns = zip(names[ranked.items], ranked.votes, ranked.gain, ranked.prediction)
    write_csv(out, header, ([name, votes, gain, *chance] for name, votes, gain, chance in columns))
