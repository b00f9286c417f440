"""The training rows that ``FittedHead.fit`` takes, and the adapter for a ``fit`` that was written for version 0.2.0."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.protocols import with_validation


@dataclass(frozen=True)
class Rows:
    """Training rows: N instances with their distributions, and the columns that some data have.

    Attributes:
        features: (N, F), or bags (N, J, F) for heads that take bags.
        target: (N, C) distributions.
        value: (N,) or (N, 2) the labels themselves; None if the data have none.
        weight: (N,) positive weights; None if all are equal. A row of weight 2 counts as two rows.
        group: (N,) integers from 0, such as the person of a row; None if groups are unknown or the fold does not
            separate them. Heads that hold out rows keep the rows of a group together.
    """

    features: Tensor
    target: Tensor
    value: Tensor | None = None
    weight: Tensor | None = None
    group: Tensor | None = None

    def __len__(self) -> int:
        return len(self.target)

    def __getitem__(self, index: Tensor | slice) -> Rows:
        """Return some of the rows, by their numbers or by a slice."""
        return self.map(lambda column: column[index])

    @property
    def columns(self) -> dict[str, Tensor]:
        """The columns that are not None, by name."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: column for name, column in columns.items() if column is not None}

    def map(self, function: Callable[[Tensor], Tensor]) -> Rows:
        """Return rows in which every column is the result of a function of it."""
        return Rows(**{name: function(column) for name, column in self.columns.items()})

    @property
    def share(self) -> Tensor:
        """(N,) share of each row in the sum of the weights, float64."""
        if self.weight is None:
            return torch.full((len(self),), 1 / len(self), dtype=torch.float64, device=self.target.device)
        return self.weight.double() / self.weight.double().sum()

    @property
    def weight_array(self) -> np.ndarray | None:
        """(N,) float64 weights in numpy, or None."""
        return None if self.weight is None else self.weight.double().cpu().numpy()

    @property
    def group_array(self) -> np.ndarray | None:
        """(N,) groups in numpy, or None."""
        return None if self.group is None else self.group.cpu().numpy()

    def hold_out(self, share: float | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the rows that stay, and of a random share that is held out, both rising.

        Whole groups are held out if groups are known. None holds out a tenth if there are enough rows
        (:func:`ldl.protocols.calibration_units`).
        """
        fold = with_validation(np.arange(len(self)), np.arange(0), share, seed, groups=self.group_array)
        return fold.train, fold.val


def check_weight(head: Any, weight: Tensor | None) -> None:
    """Raise LDLError for weights of rows if a head does not use them."""
    if weight is not None and not head.uses_weight:
        raise LDLError(
            f"{type(head).__name__} takes no row weights, and the rows have different ones; set data.weighting equal, "
            "leave out sample_weight, or take another head"
        )


Fit = Callable[..., None]
EXTRA_COLUMNS = ("value", "weight", "group")
"""Keywords that a ``fit`` of version 0.2.0 may take."""


def adapt_fit(cls: type) -> Fit:
    """Return the ``fit`` of a class of heads so that it takes both forms of arguments, and checks the weights.

    The arguments are ``(rows, collective)``, or those of version 0.2.0: ``(features, target, collective)`` and the
    keywords ``value``, ``weight`` and ``group``. A ``fit`` that is written for 0.2.0 gets the keywords that it names.
    """
    fit: Fit = vars(cls)["fit"]
    extra = _extra_columns(fit)
    if extra is not None:
        _warn(f"{cls.__name__}.fit takes features and target", stacklevel=5)

    @functools.wraps(fit)
    def adapted(head: Any, rows: Any, *arguments: Any, **keywords: Any) -> None:
        if not isinstance(rows, Rows):
            if extra is not None:
                return fit(head, rows, *arguments, **keywords)
            _warn(f"{cls.__name__}.fit is called with features and target", stacklevel=3)
            rows, collective = _join_columns(rows, *arguments, **keywords)
            arguments, keywords = (collective,), {}
        check_weight(head, rows.weight)
        if extra is None:
            return fit(head, rows, *arguments, **keywords)
        columns = _select({name: getattr(rows, name) for name in EXTRA_COLUMNS}, extra)
        return fit(head, rows.features, rows.target, *arguments, **columns, **keywords)

    return adapted


def wanted_of(head: Any, columns: Mapping[str, Tensor | None]) -> dict[str, Tensor | None]:
    """Return the columns that a head takes in ``fit`` or ``loss``, for plugins of 0.2.0 that call other heads."""
    check_weight(head, columns.get("weight"))
    if hasattr(head, "fit"):
        taken = _extra_columns(type(head).fit)
    else:
        taken = tuple(name for name in ("value", "weight") if getattr(head, f"uses_{name}"))
    return _select(columns, EXTRA_COLUMNS if taken is None else taken)


def _select(columns: Mapping[str, Tensor | None], names: tuple[str, ...]) -> dict[str, Tensor | None]:
    """Return the named columns. Equal weights, None, are left out, since a ``fit`` need not take any."""
    return {name: columns[name] for name in names if name in columns and (name, columns[name]) != ("weight", None)}


def _extra_columns(fit: Fit) -> tuple[str, ...] | None:
    """Return the keywords of a ``fit`` of version 0.2.0; None for a ``fit`` that takes ``(rows, collective)``."""
    parameters = list(inspect.signature(fit).parameters.values())[1:]
    kinds = [parameter.kind for parameter in parameters]
    positional = kinds.count(inspect.Parameter.POSITIONAL_ONLY) + kinds.count(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if positional == 2 and inspect.Parameter.VAR_POSITIONAL not in kinds:
        return None
    if inspect.Parameter.VAR_KEYWORD in kinds:
        return EXTRA_COLUMNS
    names = {parameter.name for parameter in parameters}
    return tuple(name for name in EXTRA_COLUMNS if name in names)


def _join_columns(
    features: Tensor, target: Tensor, collective: Collective, **columns: Tensor | None
) -> tuple[Rows, Collective]:
    return Rows(features, target, **columns), collective


def _warn(problem: str, stacklevel: int) -> None:
    advice = "change it to fit(rows, collective), with ldl.methods.rows.Rows"
    warnings.warn(f"{problem}, as in ldl 0.2.0; {advice}", DeprecationWarning, stacklevel=stacklevel)
