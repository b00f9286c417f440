"""Comparison of a model with the annotators of a test set: their agreement, and the model's worth in annotators.

The worth is called rater equivalence or survey equivalence; see :mod:`ldl.annotations.equivalence`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from pytorch_lightning.utilities import rank_zero_warn

from ldl.annotations import PowerCurves, krippendorff_alpha, measure_power, most_raters, vote_counts, vote_nll
from ldl.annotations.equivalence import MOST_RATERS, compare, items_with_more
from ldl.annotations.mixture import combiner_in_words
from ldl.errors import LDLError
from ldl.labels import LabelSpace

CURVES = ("power", "with_model")
"""Columns of the power curves of test rows, without and with the model; each has another one of variances."""


def power_columns(data: Any, rows: dict[str, np.ndarray], model_votes: float | None) -> dict[str, np.ndarray]:
    """Return columns of test rows that :func:`compare_with_raters` needs, since folds have combiners of their own.

    Args:
        data: The data module, with a ``combiner`` that is fitted to the votes of its training set.
        rows: Columns ``prediction`` and ``target`` (n, C), and ``votes`` (n,).
        model_votes: Number of votes that a prediction counts as; None without validation votes.

    Returns:
        ``components`` (n,), the number of components of the combiner; ``power`` and ``power_variance`` (n, 31), which
        are NaN beyond the votes of an item; and, if ``model_votes`` is known, the same for ``with_model``. An empty
        dict, with a warning, if the combiner is unknown or the votes or predictions allow no curve.
    """
    try:
        prediction, counts = _prediction_and_counts(rows)
        combiner = data.combiner
        nll = vote_nll(prediction, counts)
        raters = min(int(counts.sum(1).max()) - 1, MOST_RATERS)
        curves = [measure_power(counts, combiner, raters)]
        if model_votes is not None:
            curves.append(measure_power(counts, combiner, raters, prediction, model_votes))
    except (AttributeError, LDLError) as error:
        _warn(error if isinstance(error, LDLError) else f"{type(data).__name__} has no combiner of votes")
        return {}
    columns = {"components": np.full(len(nll), combiner.size)}
    for name, curve in zip(CURVES, curves):
        wide = [(0, 0), (0, MOST_RATERS - raters)]
        columns[name], columns[f"{name}_variance"] = (np.pad(values, wide, constant_values=np.nan) for values in curve)
    return columns


def compare_with_raters(rows: dict[str, np.ndarray], labels: LabelSpace) -> dict[str, Any] | None:
    """Compare the predictions of test rows with annotators.

    Args:
        rows: Columns ``prediction`` and ``target`` (n, C), ``votes`` (n,), the columns of
            :func:`power_columns`, and ``group`` (n,) if known, for the bootstrap.
        labels: The label space.

    Returns:
        The entry ``raters`` of ``results.json``, or None, with a warning, if the votes allow no comparison. In it, a
        worth of more than ``most`` raters is None.
    """
    if "power" not in rows:
        return None
    prediction, counts = _prediction_and_counts(rows)
    try:
        most = most_raters(counts)
        kept = items_with_more(counts, most)
        curves = {
            name: PowerCurves(rows[name], rows[f"{name}_variance"]).select(kept, most)
            for name in CURVES
            if name in rows
        }
        groups = rows["group"][kept] if "group" in rows else None
        nll = vote_nll(prediction[kept], counts[kept])
        equivalence = compare(nll, curves["power"], curves.get("with_model"), groups)
        alpha = math.nan if labels.kind == "grid" else krippendorff_alpha(counts, labels)
    except LDLError as error:
        _warn(error)
        return None
    return {
        "items": equivalence.items,
        "most": most,
        "labels": f"{len(labels)} {labels.kind} labels",
        "combiner": "Dirichlet mixture",
        "components": np.unique(rows["components"]).tolist(),
        "alpha": _finite(alpha),
        "nll": equivalence.nll,
        "worth": _finite(equivalence.worth),
        "low": _finite(equivalence.interval[0]),
        "high": _finite(equivalence.interval[1]),
        "level": equivalence.level,
        "power": equivalence.curve.tolist(),
        "power_error": equivalence.error.tolist(),
        "with_model": None if equivalence.with_model is None else equivalence.with_model.tolist(),
        "with_model_error": None if equivalence.with_model_error is None else equivalence.with_model_error.tolist(),
    }


def _prediction_and_counts(rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return rows["prediction"].astype(np.float64), vote_counts(rows["target"], rows["votes"])


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
    return f"The model is worth {worth_in_words(raters)} on {conditions_in_words(raters)}{agree}"


def conditions_in_words(raters: dict[str, Any]) -> str:
    """Return the items, K, labels and combiner of a worth; results of ldl 0.2 and before have one Dirichlet."""
    labels = f" for {raters['labels']}" if "labels" in raters else ""
    combiner = combiner_in_words(raters.get("components", [1]))
    return (
        f"{raters['items']:,} items with more than {raters['most']} votes{labels} (survey equivalence; votes combined "
        f"by {combiner})"
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _warn(reason: object) -> None:
    rank_zero_warn(f"the comparison with raters is left out: {reason}")
