"""Data modules whose targets are votes: options that describe the votes, and the weight of an item by its votes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch

from ldl.annotations import Annotations, DirichletMixture, DirichletMultinomial, read_annotations, vote_counts
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.options import option, options

Weighting = Literal["equal", "votes", "dirichlet"]


@options
class Annotated(LDLDataModule):
    """Instances that several people have labelled; targets are the shares of their votes.

    Votes stand in columns of the table of instances (``label_columns``), or in a file of their own (``votes``) in the
    layout of counts, of single votes, or of a matrix (:func:`ldl.annotations.read_annotations`), which is joined by the
    item. A subclass calls :meth:`annotate` in ``load`` and gives ``Loaded.columns`` the number of ``votes`` (size,).

    Weights apply to training rows, and their mean is 1. Validation and test rows count equally.

    Args:
        label_columns: Names or patterns, such as ``r*``, of the columns with counts or shares of the labels; by default
            those with the prefix ``label:``.
        votes_column: Column with the number of votes of an item, if the label columns hold shares.
        votes: File of votes, as given or below the data folder; None takes the label columns.
        item_column: Column that names the item in both files; None takes the first usual name.
        rater_column: Column of the rater in a file with one vote per row; None takes a usual name.
        vote_column: Column of the label in a file with one vote per row; None takes a usual name.
        rater_columns: Names or patterns of the columns of raters in a matrix.
        label_order: Labels from the lowest to the highest, for ordinal labels that are not numbers, in any layout.
        unlabelled: Whether to leave out instances without a vote, or to raise an error.
        weighting: Weight of a training row with n votes: ``equal`` is 1, ``votes`` is n, and ``dirichlet`` is the
            effective number of votes n (s + 1) / (n + s), with the concentration s fitted to the training set.
        smooth: Replace training targets by their posterior mean under the Dirichlet prior of the training set.

    Attributes:
        prior: The Dirichlet prior that is fitted to the votes of the training set.
        combiner: The mixture of Dirichlets that is fitted to them, which predicts a vote from others on the same item.
    """

    label_columns: Sequence[str] | str = ()
    votes_column: str | None = None
    votes: str | None = None
    item_column: str | None = None
    rater_column: str | None = None
    vote_column: str | None = None
    rater_columns: Sequence[str] | str = ()
    label_order: Sequence[str] = ()
    unlabelled: Literal["drop", "error"] = "drop"
    weighting: Weighting = option(default="equal")
    smooth: bool = False

    _observed = None  # type: torch.Tensor | None
    _fitted = None  # type: tuple[Any, DirichletMultinomial] | None
    _combined = None  # type: tuple[Any, DirichletMixture] | None

    def annotate(
        self,
        table: Any,
        keys: Sequence[Any] | np.ndarray,
        source: str,
        item: str | None = None,
        spell: Callable[[str], str] | None = None,
    ) -> tuple[Annotations, np.ndarray]:
        """Return the annotations of instances, and the numbers (n,) of the instances that have votes, rising.

        Args:
            table: A DataFrame of the instances, with the label columns; unused if ``votes`` names a file.
            keys: Item of every instance.
            source: Name of the table, for messages.
            item: Column of the keys in ``table``, which may then have any layout, such as one row a vote; None if each
                row is an instance.
            spell: Returns the spelling in ``keys`` of an item in the file ``votes``; None compares them as they are.

        Raises:
            LDLError: Votes are wrong or do not join.
        """
        columns = self.rater_column, self.vote_column, self.label_columns, self.rater_columns, self.votes_column
        names = ("rater_column", "vote_column", "label_columns", "rater_columns", "votes_column")
        given: dict[str, Any] = dict(zip(names, columns)) | {"order": self.label_order, "unlabelled": self.unlabelled}
        layout: Literal["counts"] | None = None
        if self.votes is not None:
            votes, item = self.find(self.votes), self.item_column
        else:
            votes = table.assign()
            votes.attrs["source"] = source  # for messages
            if item is None:
                keys, layout, item = np.arange(len(table)), "counts", ROW
                votes[ROW] = keys
        read = read_annotations(votes, layout, item_column=item, spell=spell, **given)
        found, rows = read.join(keys, source, self.unlabelled)
        known = self.trained_labels
        if known is not None and found.layout != "counts" and set(found.labels.names) < set(known.names):
            found = found.over(known)  # these items have no vote for some label of training
        return found, rows

    def prepare_fold(self) -> None:
        """Weigh the training rows, and smooth their targets. Raises LDLError without numbers of votes."""
        super().prepare_fold()
        if self.weighting == "equal" and not self.smooth:
            return
        votes, rows = self._votes(), self.split.train
        weight = np.ones(self.size, np.float32)
        if self.weighting == "votes":
            weight[rows] = votes[rows]
        elif self.weighting == "dirichlet":
            weight[rows] = self.prior.effective_votes(votes[rows])
        weight[rows] /= weight[rows].mean(dtype=np.float64)
        self.columns = {**self.columns, "weight": torch.from_numpy(weight)}
        if self.smooth:
            target = self._shares().clone()
            target[rows] = torch.from_numpy(self.prior.posterior_mean(self.counts(rows))).to(target.dtype)
            self.columns["target"] = target

    @property
    def prior(self) -> DirichletMultinomial:
        if self._fitted is None or self._fitted[0] is not self.split:
            self._fitted = self.split, DirichletMultinomial.fit(self.counts(self.split.train))
        return self._fitted[1]

    @property
    def combiner(self) -> DirichletMixture:
        if self._combined is None or self._combined[0] is not self.split:
            rows = self.split.train
            groups = None if self.groups is None else np.asarray(self.groups)[rows]
            self._combined = self.split, DirichletMixture.fit(self.counts(rows), groups)
        return self._combined[1]

    def counts(self, rows: np.ndarray) -> np.ndarray:
        """Return the votes (n, C) of some instances. Raises LDLError if their number is unknown."""
        return vote_counts(self._shares()[torch.from_numpy(rows)].numpy(), self._votes()[rows])

    def _shares(self) -> torch.Tensor:
        """Return the observed distributions (size, C), without smoothing."""
        if self._observed is None:
            self._observed = self.columns["target"]
        return self._observed

    def _votes(self) -> np.ndarray:
        if (votes := self.columns.get("votes")) is None:
            raise LDLError(
                f"the number of votes of each row is unknown, and data.weighting {self.weighting} and data.smooth need "
                "it; pass --data.votes_column COLUMN, or counts in place of shares"
            )
        return np.asarray(votes.double().numpy())


ROW = "ldl:row"
"""Column with the row number, which is added to a table of counts."""
