"""Data modules whose targets are votes: options that describe the votes, what is learned of them, and row weights."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from pytorch_lightning.utilities import rank_zero_warn
from typing_extensions import override

from ldl.annotations import (
    Annotations,
    DawidSkene,
    DirichletMixture,
    DirichletMultinomial,
    SingleVotes,
    read_annotations,
    vote_counts,
)
from ldl.annotations.columns import VoteColumns, VoteOptions, find_columns, listed_names, matching_columns
from ldl.annotations.reading import open_votes
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.data.names import find_group, matching
from ldl.data.rater_features import describe_raters, make_table, read_raters
from ldl.errors import LDLError, some
from ldl.options import option, options
from ldl.raters.columns import vote_columns
from ldl.raters.table import RaterTable
from ldl.tables.roles import usual_columns

Weighting = Literal["equal", "votes", "dirichlet"]
LearnedTarget = Literal["shares", "majority", "dawid_skene"]


@options
class Annotated(LDLDataModule):
    """Instances that several people have labelled; targets are the shares of their votes.

    An option can replace the targets of training rows. Validation and test rows always keep the shares, so runs with
    different options are compared on the same targets.

    Votes stand in columns of the table of instances, or in a file of their own (``votes``), which is joined by the
    item, in the layout of counts (``label_columns``), of single votes (``vote_column``), or of a matrix
    (``rater_columns``); see :func:`ldl.annotations.read_annotations`. A subclass calls :meth:`annotate` in ``load`` and
    gives ``Loaded.columns`` the number of ``votes`` (size,).

    Weights apply to training rows, and their mean is 1, whatever ``target`` is. Validation and test rows count equally.

    Args:
        label_columns: Names or patterns, such as ``r*``, of the columns with counts or shares of the labels; by default
            those with the prefix ``label:``.
        votes_column: Column with the number of votes of an item, if the label columns hold shares.
        votes: File of votes, as given or below the data folder; None takes the votes in the table of instances.
        item_column: Column that names the item; None takes the first usual name, such as ``item`` or ``id``.
        votes_item_column: Column that names the item in the file ``votes``; None takes ``item_column`` if it is there,
            else the first usual name.
        rater_column: Column of the rater, with one vote per row; None takes a usual name, if there is one.
        vote_column: Column of the label, with one vote per row; None takes a usual name.
        rater_columns: Names or patterns of the columns of raters in a matrix.
        rater_features: Names or patterns of columns that describe the rater, such as ``age``, for ``model.raters``.
            They stand beside the single votes, constant within a rater, or in the file ``raters``.
        raters: File with one row a rater, whose columns describe raters; None takes the columns beside the votes.
        label_order: Labels from the lowest to the highest, for ordinal labels, in any layout.
        label_type: ``ordinal`` labels have values and an order, ``nominal`` ones do not; ``auto`` takes labels whose
            names are numbers, or that ``label_order`` gives, as ordinal.
        no_vote: Answers that are no votes, such as ``skip`` or ``-1``.
        duplicates: Votes of a rater who has voted on the item before: an ``error``, or take the ``first`` or the
            ``last``, or ``keep`` all.
        multiple: Several labels in one vote: an ``error``, or ``count`` each.
        unlabelled: Whether to leave out instances without a vote, or to raise an error.
        unknown_items: Whether to leave out votes for items that the table does not have, or to raise an error.
        weighting: Weight of a training row with n votes: ``equal`` is 1, ``votes`` is n, and ``dirichlet`` is the
            effective number of votes n (s + 1) / (n + s), with the concentration s fitted to the training set.
        smooth: Replace training targets by their posterior mean under the Dirichlet prior of the training set.
        target: Target of a training row: the ``shares`` of its votes; its ``majority`` label, of which ``fold_seed``
            chooses one of equal ones at random; or ``dawid_skene``, the probabilities of its true label by the model of
            Dawid and Skene, which is fitted to the training set and needs the rater of each vote.

    Attributes:
        annotations: The votes of all instances, after ``setup``, one item an instance; None if labels are no votes.
        prior: The Dirichlet prior that is fitted to the votes of the training set.
        combiner: The mixture of Dirichlets that is fitted to them, which predicts a vote from others on the same item.
        dawid_skene: The model of Dawid and Skene that is fitted to them; its items are the rows of the training set.
    """

    label_columns: Sequence[str] | str = option(default=(), role="label")
    votes_column: str | None = option(default=None, role="label")
    votes: str | None = option(default=None, role="label", is_path=True)
    item_column: str | None = option(default=None, role="label")
    votes_item_column: str | None = option(default=None, role="label")
    rater_column: str | None = option(default=None, role="label")
    vote_column: str | None = option(default=None, role="label")
    rater_columns: Sequence[str] | str = option(default=(), role="label")
    rater_features: Sequence[str] | str = option(default=(), role="feature")
    raters: str | None = option(default=None, role="feature", is_path=True)
    label_order: Sequence[str] = option(default=(), role="label")
    label_type: Literal["auto", "nominal", "ordinal"] = option(default="auto", role="label")
    no_vote: Sequence[str] | str = option(default=(), role="label")
    duplicates: Literal["error", "first", "last", "keep"] = option(default="error", role="label")
    multiple: Literal["error", "count"] = option(default="error", role="label")
    unlabelled: Literal["drop", "error"] = option(default="drop", role="fold")
    unknown_items: Literal["drop", "error"] = option(default="error", role="label")
    weighting: Weighting = option(default="equal", role="training")
    smooth: bool = option(default=False, role="training")
    target: LearnedTarget = option(default="shares", role="training")

    annotations = None  # type: Annotations | None
    _described = None  # type: Any
    _observed = None  # type: torch.Tensor | None
    _fitted = None  # type: tuple[Any, DirichletMultinomial] | None
    _combined = None  # type: tuple[Any, DirichletMixture] | None
    _raters = None  # type: tuple[Any, DawidSkene] | None

    @property
    def describes_votes(self) -> bool:
        """Whether an option names a column of votes."""
        return any(bool(getattr(self, name)) for name in COLUMNS)

    @property
    def describes_labels(self) -> bool:
        """Whether an option decides what votes mean, or which order labels have."""
        return bool(self.label_order or self.no_vote) or self.label_type != "auto"

    def vote_columns(self, header: Iterable[Any], source: str) -> VoteColumns:
        """Return the columns of votes in a table with this header. Raises LDLError if no layout fits.

        If ``vote_column`` is given, and no column names an item or a rater, each row is an item.
        """
        header, item = list(header), self.item_column
        if (
            self.vote_column is not None
            and item is None
            and not (usual_columns(header, "item") or usual_columns(header, "rater") or self.rater_column)
        ):
            header, item = [*header, ROW], ROW
        return self._beside_raters(header, find_columns(header, source, options=self._vote_options(item)), source)

    def _beside_raters(self, header: Sequence[Any], columns: VoteColumns, source: str) -> VoteColumns:
        """Return the columns of votes with those of ``rater_features`` beside them. Raises LDLError."""
        patterns = listed_names(self.rater_features)
        if not patterns or self.raters is not None:
            return columns
        if columns.layout != "long" or columns.rater is None:
            raise LDLError(
                f"{source} has no column of the rater, beside which data.rater_features {some(patterns)} could stand; "
                "name it with --data.rater_column, or give a file of the raters, --data.raters"
            )
        single = (columns.item, columns.rater, columns.vote)
        features = [name for name in matching_columns(header, patterns, source) if name not in single]
        return replace(columns, beside=(*(name for name in columns.beside if name not in features), *features))

    def votes_file(self, table: Path) -> Path | None:
        """Return the path of the file ``votes``; None if there is none, or if it is the file of the ``table``."""
        if self.votes is None or (file := self.find(self.votes)).resolve() == table.resolve():
            return None
        return file

    def votes_apart(self, table: Path) -> VoteColumns | None:
        """Return the columns of the file ``votes``; None if the votes stand in the ``table``.

        Raises:
            LDLError: The file cannot be read, or no layout fits.
        """
        if (file := self.votes_file(table)) is None:
            return None
        if not file.exists():
            raise LDLError(
                f"no file of votes at {file}; correct --data.votes, or the data folder, --data.root or LDL_DATA"
            )
        header = open_votes(file, self._vote_options(self.votes_item_column)).header
        item = self.votes_item_column or (self.item_column if self.item_column in header else None)
        columns = find_columns(header, str(file), options=self._vote_options(item))
        columns = self._beside_raters(header, columns, str(file))
        others = [name for name in header if name not in columns.all]
        group = find_group(file, others, getattr(self, "group_key", None), needed=False)
        return replace(columns, group=group, split=next(iter(usual_columns(others, "split")), None))

    def _vote_options(self, item: str | None) -> VoteOptions:
        return VoteOptions(item, **{name: getattr(self, name) for name in COLUMNS})

    def annotate(
        self,
        table: Any,
        keys: Sequence[Any] | np.ndarray,
        source: str,
        item: str | None = None,
        spell: Callable[[str], str] | None = None,
        columns: VoteColumns | None = None,
        apart: VoteColumns | None = None,
    ) -> tuple[Annotations, np.ndarray]:
        """Return the annotations of instances, and the numbers (n,) of the instances that have votes, rising.

        Args:
            table: A DataFrame of the instances, with the columns of votes unless they stand in another file.
            keys: Item of every instance; unused if each row is an instance.
            source: Path of the table.
            item: Column of the keys in ``table``, which may then have any layout, such as one row a vote; None if each
                row is an instance.
            spell: Returns the spelling in ``keys`` of an item in the file ``votes``; None compares them as they are.
            columns: Columns of votes in ``table``; None finds them.
            apart: Columns of the file ``votes``; None finds them, unless the votes stand in ``columns``.

        Raises:
            LDLError: Votes are wrong or do not join.
        """
        votes: Any
        if columns is None and apart is None:
            apart = self.votes_apart(Path(source))
        if apart is not None:
            votes, columns = self.find(str(self.votes)), apart
        else:
            votes, columns = table.assign(), columns or self.vote_columns(table.columns, source)
            if item is None:
                keys, item = np.arange(len(table)), ROW
                votes[ROW] = keys
            votes.attrs["source"] = source  # for messages
            columns = replace(columns, item=item, group=None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # the notes are printed once, below
            read = read_annotations(
                votes,
                columns.layout,
                item_column=columns.item,
                rater_column=columns.rater,
                vote_column=columns.vote,
                label_columns=columns.labels,
                rater_columns=columns.raters,
                votes_column=columns.total,
                group_column=columns.group,
                order=self.label_order,
                label_type=self.label_type,
                no_vote=self.no_vote,
                duplicates=self.duplicates,
                multiple=self.multiple,
                unlabelled=self.unlabelled,
                spell=spell,
            )
            joined, rows = read.join(keys, source, self.unlabelled, self.unknown_items)
        if process_rank() == 0:
            for note in joined.notes:
                print(note, flush=True)
        trained = self.trained_labels
        if trained is not None and joined.layout != "counts" and set(joined.labels.names) < set(trained.names):
            joined = joined.over(trained)  # these items have no vote for some label of training
        self.annotations, self._observed = joined, None
        self._described = None if joined.single is None else self._describe_raters(joined.single.names, votes, columns)
        return joined, rows

    def _describe_raters(self, raters: np.ndarray, votes: Any, columns: VoteColumns) -> Any:
        """Return the features of raters (R,) as a typed frame, or None if no option names any. Raises LDLError."""
        patterns, names = listed_names(self.rater_features), [str(name) for name in raters]
        if self.raters is not None:
            file = self.find(self.raters)
            return describe_raters(*read_raters(file, self.rater_column, patterns), names, str(file))
        if not patterns:
            return None
        source = str(votes if isinstance(votes, Path) else votes.attrs["source"])
        if isinstance(votes, Path):
            opened = open_votes(votes, self._vote_options(columns.item))
            votes = opened.texts(opened.header)
        features = [name for name in matching_columns(votes.columns, patterns, source) if name in columns.beside]
        return describe_raters(votes[[columns.rater, *features]], columns.rater, names, source)

    def describe_votes(self, votes: Annotations) -> str:
        """Return a description of the votes for :meth:`report_columns`, with the ``target`` if it is not the shares."""
        return str(votes) if self.target == "shares" else f"{votes}; training learns {self.target}"

    def prepare_fold(self) -> None:
        """Weigh the training rows, and replace their targets.

        Raises:
            LDLError: Weights or smoothing without numbers of votes; targets that are no votes, or have no raters; or
                ``smooth`` with a ``target`` other than shares.
        """
        super().prepare_fold()
        if self.smooth and self.target != "shares":
            raise LDLError(
                f"data.smooth replaces the shares of votes, and data.target {self.target} learns no shares; leave one "
                "of them out"
            )
        if self.weighting != "equal" or self.smooth:
            self.columns = {**self.columns, "weight": self._row_weights()}
        if self.target != "shares" or self.smooth:
            rows = self.split.train
            if not isinstance(self.observed_target, torch.Tensor):
                raise LDLError(
                    f"data.target {self.target} replaces labels, and the table stays on disk; read it into memory with "
                    "a larger --data.in_memory"
                )
            target = self.observed_target.clone()
            target[rows] = torch.from_numpy(self._learned(rows)).to(target.dtype)
            self.columns = {**self.columns, "target": target}

    def _row_weights(self) -> torch.Tensor:
        """Return the weight of each row (size,), by ``weighting``."""
        votes, rows = self._votes(), self.split.train
        weight = np.ones(self.size, np.float32)
        if self.weighting == "votes":
            weight[rows] = votes[rows]
        elif self.weighting == "dirichlet":
            weight[rows] = self.prior.effective_votes(votes[rows])
        weight[rows] /= weight[rows].mean(dtype=np.float64)
        return torch.from_numpy(weight)

    def _learned(self, rows: np.ndarray) -> np.ndarray:
        """Return what a head learns of the training rows (n, C)."""
        if self.smooth:
            return self.prior.posterior_mean(self.counts(rows))
        if self.target == "dawid_skene":
            return self.dawid_skene.probabilities
        shares = self.observed_target.numpy()
        if not self._ready and process_rank() == 0:  # not again for every fold
            print(self._describe_ties(shares), flush=True)
        return majority(shares, self.fold_seed)[rows]

    @property
    def prior(self) -> DirichletMultinomial:
        """Prior of the shares, fitted to the votes of the training set; fitted again for each split."""
        if self._fitted is None or self._fitted[0] is not self.split:
            self._fitted = self.split, DirichletMultinomial.fit(self.counts(self.split.train))
        return self._fitted[1]

    @property
    def combiner(self) -> DirichletMixture:
        """Mixture of priors, fitted to the votes of the training set; fitted again for each split."""
        if self._combined is None or self._combined[0] is not self.split:
            rows = self.split.train
            groups = None if self.groups is None else np.asarray(self.groups)[rows]
            self._combined = self.split, DirichletMixture.fit(self.counts(rows), groups)
        return self._combined[1]

    @property
    def dawid_skene(self) -> DawidSkene:
        """Model of Dawid and Skene of the training set. Raises LDLError if the rater of a vote is unknown."""
        if self._raters is None or self._raters[0] is not self.split:
            rows, labels = self.split.train, len(self.labels)
            single = self._single_votes("data.target dawid_skene")
            self._raters = self.split, DawidSkene.fit(single.take(rows), len(rows), labels)
        return self._raters[1]

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Return the votes (n, C) of some instances. Raises LDLError if their number is unknown."""
        return vote_counts(self.observed_target[torch.from_numpy(rows)].numpy(), self._votes()[rows])

    @property
    @override
    def observed_target(self) -> Any:
        if self._observed is None:
            self._observed = self.columns["target"]
        return self._observed

    @property
    @override
    def single_votes(self) -> SingleVotes | None:
        is_known = self.annotations is not None and self.annotations.single is not None
        return self._single_votes("single_votes") if is_known else None

    @property
    def rater_table(self) -> RaterTable:
        """The raters, with their votes in the training set. Raises LDLError if raters are unknown, or not learned."""
        if self.target != "shares" or self.smooth:
            option = "smooth true" if self.smooth else f"target {self.target}"
            raise LDLError(
                f"model.raters learns from the votes of each rater, and data.{option} replaces them; leave one of them "
                "out"
            )
        single = self._single_votes("model.raters")
        votes = np.bincount(single.take(self.split.train).rater, minlength=len(single.names))
        return make_table([str(name) for name in single.names], votes, self._described)

    @override
    def serve_votes(self, names: Sequence[str] = (), train: bool = False) -> None:
        try:
            single = self.single_votes
        except LDLError as error:
            if train:
                raise
            rank_zero_warn(f"the metrics of single votes are left out: {error}")
            return
        if single is not None:
            self.columns = {**self.columns, **vote_columns(single, self.size, names, train)}

    def _single_votes(self, option: str) -> SingleVotes:
        """Return the votes with their raters, with the numbers of rows and labels of this module.

        Args:
            option: The option that needs them.

        Raises:
            LDLError: They are unknown.
        """
        if (annotations := self.annotations) is None:
            raise LDLError(
                f"{option} learns from votes, and the labels are distributions; leave it out, or name the votes with "
                "--data.votes, vote_column or rater_columns"
            )
        if (single := annotations.single) is None:
            fix = "name the column of the rater with --data.rater_column"
            if annotations.layout == "counts":
                fix = "give one row a vote, with --data.rater_column, or one column a rater, with --data.rater_columns"
            raise LDLError(f"{option} needs the rater of each vote, and raters are unknown; {fix}")
        if len(annotations) != self.size:
            raise LDLError(
                f"{type(self).__name__} has {self.size} instances and votes on {len(annotations)}; set annotations to "
                "those of the instances in load()"
            )
        if annotations.labels == self.labels:
            return single
        places = matching(annotations.labels.names, self.labels) or range(len(self.labels))
        return single.relabel(np.argsort(places))

    def _describe_ties(self, shares: np.ndarray) -> str:
        ties = int((is_largest(shares).sum(1) > 1).sum())
        return (
            f"data.target majority: {ties} of {len(shares)} rows have several labels with most votes; training takes "
            f"one of them at random, by data.fold_seed {self.fold_seed}"
        )

    def _votes(self) -> np.ndarray:
        if (votes := self.columns.get("votes")) is None:
            raise LDLError(
                f"the number of votes of each row is unknown, and data.weighting {self.weighting} and data.smooth need "
                "it; pass --data.votes_column COLUMN, or counts in place of shares"
            )
        return np.asarray(votes.double().numpy())


def majority(shares: np.ndarray, seed: int) -> np.ndarray:
    """Return the label with the largest share of each row as a distribution (n, C), of equal ones one at random.

    Args:
        shares: (n, C) shares of votes.
        seed: Seed of the choice, which depends on the number of a row and not on other rows.
    """
    chance = np.random.default_rng(seed).random(shares.shape)
    chosen = np.where(is_largest(shares), chance, -1).argmax(1)
    return np.eye(shares.shape[1])[chosen]


def is_largest(shares: np.ndarray) -> np.ndarray:
    """Return which labels have the largest share of their row, (n, C) bool, up to rounding."""
    return np.asarray(shares >= shares.max(1, keepdims=True) - 1e-6)


ROW = "ldl:row"
"""Column with the row number, which is added to a table with one row an instance."""
COLUMNS = ("rater_column", "vote_column", "label_columns", "rater_columns", "votes_column")
"""Options of the columns of votes, besides the item, in the order of :class:`VoteOptions`."""
