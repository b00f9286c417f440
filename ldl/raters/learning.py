"""How a task learns a model of raters: checks of its options, the raters of the data, and the loss of a batch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, get_args

import torch
from torch import Tensor

from ldl.errors import LDLError
from ldl.head import AlternatingHead, FittedHead, Head
from ldl.labels import LabelSpace
from ldl.raters.model import STRENGTHS, RaterModel, Raters, Shrinkage
from ldl.raters.table import RaterTable


def strengths_of(shrinkage: Shrinkage) -> Sequence[float]:
    """Return the strengths of shrinkage that the option ``model.rater_shrinkage`` gives."""
    if shrinkage is None:
        return STRENGTHS
    return [shrinkage] if isinstance(shrinkage, int | float) else shrinkage


def check_raters(head: Head, kind: str, shrinkage: Shrinkage, mixup: float) -> None:
    """Raise LDLError for options of a model of raters that are out of range or do not fit the task."""
    if kind not in (kinds := get_args(RaterModel)):
        raise LDLError(f"model.raters {kind!r} must be one of {', '.join(kinds)}")
    if kind == "none":
        if shrinkage is not None:
            raise LDLError(
                f"model.rater_shrinkage {shrinkage!r} shrinks a model of raters, and there is none; set model.raters "
                "bias or confusion, or leave it out"
            )
        return
    strengths = strengths_of(shrinkage)
    if not strengths or not all(0 < strength < math.inf for strength in strengths):
        raise LDLError(f"model.rater_shrinkage {shrinkage!r} must be above 0, such as 2.0, or null for several numbers")
    name = type(head).__name__
    if isinstance(head, FittedHead):
        raise LDLError(
            f"model.raters {kind}: {name} is fitted in one go, and a model of raters learns by gradient; take Softmax "
            "or LDLF"
        )
    if head.takes_bags:
        raise LDLError(
            f"model.raters {kind}: {name} takes bags, and raters vote on single instances; set model.raters none"
        )
    if mixup:
        raise LDLError(f"model.mixup {mixup!r} mixes instances, whose raters differ; set it to 0, or model.raters none")


def make_raters(task: Any, labels: LabelSpace, source: Any) -> Raters:
    """Return the model of raters of a task.

    Args:
        task: The task, whose backbone is built.
        labels: The label space.
        source: The raters, a ``RaterTable`` or a data module with ``rater_table``.

    Raises:
        LDLError: Predictions are maps, or the raters are unknown.
    """
    if task.gives_maps:
        raise LDLError(
            f"model.raters {task.rater_model} is for one distribution an instance, and these are maps; set "
            "model.raters none"
        )
    table = source if source is None or isinstance(source, RaterTable) else getattr(source, "rater_table", None)
    if table is None:
        owner = "the task" if source is None else type(source).__name__
        raise LDLError(
            f"model.raters {task.rater_model} needs the rater of each vote, and {owner} has none; give single votes "
            "(--data.rater_column, or rater_columns) or Task.build a RaterTable, or set model.raters none"
        )
    return Raters(task.rater_model, labels, table, strengths_of(task.rater_shrinkage))


def rater_options(state: dict[str, Any] | None) -> dict[str, Any]:
    """Return the arguments of a task from ``Raters.state`` in a checkpoint; none if it has no model of raters."""
    return {} if state is None else {"raters": state["kind"], "rater_shrinkage": state["shrinkage"]}


def check_same_raters(state: dict[str, Any] | None, raters: Raters | None) -> None:
    """Raise LDLError if the model of raters of a checkpoint, by its ``Raters.state``, is another one."""
    saved, current = ({**(each or {}), "chosen": None} for each in (state, None if raters is None else raters.state()))
    if differing := [name for name in {**saved, **current} if saved.get(name) != current.get(name)]:
        if "kind" in differing:
            before, after = (each.get("kind", "none") for each in (saved, current))
            raise LDLError(f"the checkpoint has model.raters {before}, not {after}; resume with the same")
        raise LDLError(
            f"the checkpoint's model of raters has other {', '.join(differing)}; resume with the options and the data "
            "it was saved with"
        )


def learn_votes(
    raters: Raters, head: Head, features: Tensor, batch: dict[str, Any], weight: Tensor | None
) -> tuple[dict[str, Tensor], Tensor]:
    """Return the losses of a batch, and the target (B, C) of a closed-form update of the head.

    Args:
        raters: The model of raters.
        head: The head.
        features: (B, F), or (B, k, F) of the k members of an ensemble.
        batch: The batch, with ``rater`` and ``vote`` (B, V).
        weight: (B,) weights of the items, or None.

    Raises:
        LDLError: The batch has no votes.
    """
    if "vote" not in batch or "rater" not in batch:
        raise LDLError(
            f"a batch has the columns {', '.join(map(str, batch))}, and a model of raters needs 'rater' and 'vote' "
            "(B, V)"
        )
    outputs = head.log_outputs(features)
    outputs["log_p"] = outputs["log_p"].flatten(1, -2)
    losses = raters.loss(outputs, batch["rater"], batch["vote"], weight)
    if "memory" in outputs:
        losses["memory"] = outputs["memory"]
    is_alternating = isinstance(head, AlternatingHead)
    return losses, raters.target(outputs, batch["rater"], batch["vote"]) if is_alternating else batch["target"]


def observe_votes(raters: Raters, distribution: Tensor, batch: dict[str, Any], begins: bool) -> None:
    """Add the votes of a validation batch to those by which a strength is chosen.

    Args:
        raters: The model of raters.
        distribution: (B, C) distributions of the head.
        batch: The batch, perhaps with ``rater`` and ``vote`` (B, V). Rows of weight 0 are padding.
        begins: Whether the batch is the first of its validation.
    """
    if begins:
        raters.reset()
    if "vote" in batch and "rater" in batch:
        votes = torch.where((batch["weight"] > 0)[:, None], batch["vote"], -1)
        raters.observe(distribution, batch["rater"], votes)


def predict_votes(raters: Raters, distribution: Tensor, batch: dict[str, Any]) -> Tensor:
    """Return the distributions (B, C) of the population, or of the raters ``as_rater`` (B,) of a batch.

    A rater -1 is the mean rater, or an unknown one with ``rater_features`` (B, F).
    """
    if "as_rater" not in batch:
        return raters.population(distribution)
    return raters.distribution_of(distribution, batch["as_rater"], batch.get("rater_features"))
