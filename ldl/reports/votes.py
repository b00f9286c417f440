"""Comparison of a model with the annotators of a test set: their agreement, and the model's worth in annotators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pytorch_lightning.utilities import rank_zero_warn

from ldl.annotations import DirichletMultinomial, krippendorff_alpha, rater_equivalence, vote_counts
from ldl.errors import LDLError
from ldl.labels import KL_FLOOR, LabelSpace


def prior_columns(data: Any, concentration: float | None, size: int) -> dict[str, np.ndarray]:
    """Return columns of test rows that :func:`compare_with_raters` needs, since folds have priors of their own.

    Args:
        data: The data module, with a ``prior`` that is fitted to its training set.
        concentration: Concentration of the priors around predictions; None without validation votes.
        size: Number of rows n.

    Returns:
        ``prior`` (n, C), and ``concentration`` (n,) if known. An empty dict, with a warning, if the prior is
        unknown.
    """
    try:
        alpha = data.prior.alpha
    except (AttributeError, LDLError) as error:
        _warn(error if isinstance(error, LDLError) else f"{type(data).__name__} has no prior of votes")
        return {}
    columns = {"prior": np.tile(alpha, (size, 1))}
    return columns if concentration is None else {**columns, "concentration": np.full(size, concentration)}


def compare_with_raters(rows: dict[str, np.ndarray], labels: LabelSpace) -> dict[str, Any] | None:
    """Compare the predictions of test rows with annotators.

    Args:
        rows: Columns ``prediction`` and ``target`` (n, C), ``votes`` (n,), the columns of
            :func:`prior_columns`, and ``group`` (n,) if known, for the bootstrap.
        labels: The label space.

    Returns:
        The entry ``raters`` of ``results.json``, or None, with a warning, if the votes allow no comparison. In it, a
        worth of more than ``most`` raters is None.
    """
    if "prior" not in rows:
        return None
    prediction, counts = rows["prediction"].astype(np.float64), vote_counts(rows["target"], rows["votes"])
    around = None
    if "concentration" in rows:
        around = DirichletMultinomial(rows["concentration"][:, None] * np.maximum(prediction, KL_FLOOR))
    try:
        prior = DirichletMultinomial(rows["prior"])
        found = rater_equivalence(prediction, counts, prior, around=around, groups=rows.get("group"))
        alpha = math.nan if labels.kind == "grid" else krippendorff_alpha(counts, labels)
    except LDLError as error:
        _warn(error)
        return None
    return {
        "items": found.items,
        "most": len(found.curve) - 1,
        "alpha": _finite(alpha),
        "nll": found.nll,
        "worth": _finite(found.worth),
        "low": _finite(found.interval[0]),
        "high": _finite(found.interval[1]),
        "level": found.level,
        "power": found.curve.tolist(),
        "with_model": None if found.with_model is None else found.with_model.tolist(),
    }


def worth_in_words(raters: dict[str, Any]) -> str:
    """Return the worth of the model in raters, with its interval, as text."""
    most, level = raters["most"], f"{raters['level']:.0%} interval"
    low, worth, high = (
        f"more than {most}" if raters[name] is None else f"{raters[name]:.1f}" for name in ("low", "worth", "high")
    )
    return f"{worth} raters ({level} {low} to {high})" if low != high else f"{worth} raters (all of the {level})"


def raters_in_words(raters: dict[str, Any]) -> str:
    """Return a sentence on model and votes, without a full stop."""
    alpha = raters["alpha"]
    agree = "" if alpha is None else f"; Krippendorff's alpha of the votes is {alpha:.3f}"
    return f"The model is worth {worth_in_words(raters)} on {raters['items']:,} items{agree}"


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _warn(reason: object) -> None:
    rank_zero_warn(f"the comparison with raters is left out: {reason}")
