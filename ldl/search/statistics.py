"""Statistics over folds: means, corrected paired tests, ranks with critical differences, and the recommendation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
from scipy.stats import rankdata, studentized_range
from scipy.stats import t as student

from ldl.charts.drawing import new_figure, save
from ldl.jobs.store import Result
from ldl.metrics.registry import higher_is_better

CONFIDENCE = 0.9
"""Confidence of the paired t-tests, as in Peng et al. 2018."""


def sign_of(metric: str) -> int:
    """Return the factor that makes lower values of a metric better: -1 or 1."""
    return -1 if higher_is_better(metric) else 1


def mean_and_std(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean and the sample standard deviation (n - 1) of values; the deviation of one value is NaN."""
    numbers = [float(value) for value in values]
    return fmean(numbers), stdev(numbers) if len(numbers) > 1 else math.nan


def spread(values: Iterable[float], digits: int = 3) -> str:
    """Return ``mean ± standard deviation`` as text: one value alone, and an empty string for none."""
    numbers = list(values)
    if not numbers:
        return ""
    mean, std = mean_and_std(numbers)
    return f"{mean:.{digits}f}" if math.isnan(std) else f"{mean:.{digits}f} ± {std:.{digits}f}"


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of the mean of (n,) values; NaN for one value."""
    return float(np.std(values, ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


def p_value(ours: np.ndarray, other: np.ndarray, ratio: float | None = None) -> float:
    """Return p of a two-sided paired t-test over the same folds: 1 for equal values, NaN for one fold.

    Folds share training rows, so their differences vary less than those of independent samples. With their sample
    variance s^2, the variance of their mean is (1 / n + ratio) s^2 and not s^2 / n: the corrected resampled t-test
    (Nadeau & Bengio, Machine Learning 2003).

    Args:
        ours: A metric on each of n folds.
        other: The same of another method.
        ratio: Test rows per training row; by default 1 / (n - 1), that of an n-fold cross-validation. 0 is the plain
            test of independent samples.
    """
    count = len(ours)
    if count < 2:
        return math.nan
    difference = ours - other
    if np.allclose(difference, 0, atol=1e-6):
        return 1.0
    if np.allclose(difference, difference[0]):
        return 0.0
    return float(2 * student.sf(abs(difference.mean()) / _corrected_error(difference, ratio), count - 1))


def difference_interval(
    ours: np.ndarray, other: np.ndarray, ratio: float | None = None, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the ends of the interval of the mean difference over the same folds, by the test of :func:`p_value`.

    Args:
        ours: A metric on each of n folds.
        other: The same of another method.
        ratio: As in :func:`p_value`.
        confidence: Confidence of the interval, in (0, 1).

    Returns:
        NaN for one fold.
    """
    count, difference = len(ours), ours - other
    if count < 2:
        return math.nan, math.nan
    half = float(student.ppf((1 + confidence) / 2, count - 1)) * _corrected_error(difference, ratio)
    return float(difference.mean()) - half, float(difference.mean()) + half


def _corrected_error(difference: np.ndarray, ratio: float | None) -> float:
    """Return the standard error of a mean difference (n,) over folds that share training rows."""
    count = len(difference)
    overlap = 1 / (count - 1) if ratio is None else ratio
    return math.sqrt((1 / count + overlap) * difference.var(ddof=1))


def verdict(ours: np.ndarray, other: np.ndarray, metric: str, ratio: float | None = None) -> str:
    """Return ``win``, ``tie`` or ``loss`` of the first method by :func:`p_value`."""
    if not p_value(ours, other, ratio) < 1 - CONFIDENCE:
        return "tie"
    return "win" if sign_of(metric) * (ours - other).mean() < 0 else "loss"


def holm(p: np.ndarray) -> np.ndarray:
    """Return p (tests,) adjusted for the number of tests (Holm 1979). NaN stays NaN and does not count."""
    order = np.argsort(p, kind="stable")[: int(np.isfinite(p).sum())]
    adjusted = np.full(len(p), math.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)), 1)
    return adjusted


def best_of(folds: Mapping[str, np.ndarray], metric: str) -> str:
    """Return the method with the best mean over its folds, the first of equal ones."""
    return min(folds, key=lambda name: sign_of(metric) * float(folds[name].mean()))


def against_best(folds: Mapping[str, np.ndarray], metric: str, ratio: float | None = None) -> dict[str, float]:
    """Return p of each method against the best by :func:`p_value`, adjusted by :func:`holm`.

    Args:
        folds: (folds,) values of each method.
        metric: The metric.
        ratio: As in :func:`p_value`.

    Returns:
        NaN for the best itself, for one fold, and for methods with another number of folds than the best.
    """
    best = folds[best_of(folds, metric)]
    p = np.full(len(folds), math.nan)
    for number, values in enumerate(folds.values()):
        if values is not best and len(values) == len(best):
            p[number] = p_value(values, best, ratio)
    return dict(zip(folds, holm(p).tolist()))


def best_rank(scores: list[dict[str, float]]) -> int:
    """Return the first entry with the lowest mean rank over its metrics; values that are not finite rank last."""
    ranks = []
    for name in scores[0]:
        column = [sign_of(name) * row[name] for row in scores]
        ranks.append(rankdata([value if math.isfinite(value) else math.inf for value in column]))
    return int(np.mean(ranks, axis=0).argmin())


def critical_difference(count: int, blocks: int, alpha: float = 0.05) -> float:
    """Return Nemenyi's critical difference of average ranks (Demsar, JMLR 2006, section 3.2.2).

    Args:
        count: Number of methods.
        blocks: Number of folds or data sets over which the ranks are averaged.
        alpha: Level of significance.
    """
    quantile = float(studentized_range.ppf(1 - alpha, count, np.inf)) / np.sqrt(2)
    return quantile * float(np.sqrt(count * (count + 1) / (6 * blocks)))


def bars(average: np.ndarray, blocks: int) -> np.ndarray:
    """Return the lower and upper lengths (2, methods) of the bars around average ranks (methods,).

    They are half the critical difference and end at the first and the last rank. One block has no bars, since its
    ranks have no variance to estimate.
    """
    half = critical_difference(len(average), blocks) / 2 if blocks > 1 else 0.0
    return np.stack([np.minimum(half, average - 1), np.minimum(half, len(average) - average)])


def draw_ranks(names: list[str], table: np.ndarray, path: Path, blocks: str = "sets") -> Path:
    """Draw average ranks, the best first, with bars of half the critical difference.

    Args:
        names: The methods.
        table: (blocks, methods) ranks, 1 is best.
        path: File of the chart.
        blocks: Name of the blocks over which the ranks are averaged.
    """
    average = table.mean(0)
    order = np.argsort(average, kind="stable")
    figure, axis = new_figure(7, 0.36 * len(names) + 1.4)
    places = np.arange(len(names))
    axis.errorbar(average[order], places, xerr=bars(average, len(table))[:, order], fmt="o", capsize=3)
    axis.set_xlim(0.8, len(names) + 0.2)
    axis.set_yticks(places, [names[number] for number in order])
    axis.invert_yaxis()
    axis.set_xlabel("average rank by KL" if len(table) > 1 else "rank by KL")
    if len(table) > 1:
        distance = critical_difference(len(names), len(table))
        title = f"{len(table)} {blocks}\nbars that do not overlap differ (Nemenyi, critical difference {distance:.2f})"
    else:
        title = f"one of {blocks}: its ranks alone show no difference"
    axis.set_title(title)
    axis.title.set_fontsize(9)
    return save(figure, path)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a comparison. A candidate without a finite KL on every fold has failed.

    Attributes:
        results: Results of each candidate by fold: first the mean predictor, then the simplest candidate.
        ratio: Test rows per training row, for :func:`p_value`.
        kl: (folds,) mean KL of each candidate that has not failed.
        vote_nll: (folds,) mean vote NLL of each of them; empty if the labels are no votes. It is the KL plus the
            entropy of the votes, which all candidates share, so tests and ranks by KL hold for it.
        rater_nll: (folds,) mean NLL of a vote, given its rater, of each of them; empty unless raters are known and a
            candidate has a model of raters. For the others it is the mean NLL of a vote.
        failed: The reason of each failure, in one line.
    """

    results: dict[str, list[Result]]
    ratio: float | None = None
    kl: dict[str, np.ndarray] = field(init=False, default_factory=dict)
    vote_nll: dict[str, np.ndarray] = field(init=False, default_factory=dict)
    rater_nll: dict[str, np.ndarray] = field(init=False, default_factory=dict)
    failed: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, rows in self.results.items():
            reasons = (f"fold {row['fold']}: {reason}" for row in rows if (reason := _failure(row)))
            if reason := next(reasons, ""):
                self.failed[name] = reason
            else:
                self.kl[name] = np.array([row["measures"]["kl"] for row in rows])
                if all("vote_nll" in row["measures"] for row in rows):
                    self.vote_nll[name] = np.array([row["measures"]["vote_nll"] for row in rows])
        measures = [row["measures"] for name in self.kl for row in self.results[name]]
        if any(_has_rater_model(each) for each in measures) and all("rater_nll" in each for each in measures):
            for name in self.kl:
                self.rater_nll[name] = np.array([row["measures"]["rater_nll"] for row in self.results[name]])

    @property
    def best(self) -> str:
        """The candidate with the lowest mean KL."""
        return best_of(self.kl, "kl")

    def is_near_best(self, name: str) -> bool:
        """Return whether a candidate is within one standard error of the best, by their differences over the folds."""
        difference = self.kl[name] - self.kl[self.best]
        return float(difference.mean()) <= np.nan_to_num(standard_error(difference))

    @property
    def recommended(self) -> str:
        """The best, or the mean predictor if that is within one standard error: then features are not shown to help.

        The simplest candidate within one standard error (Breiman et al. 1984) would often lose a whole one, since it
        came in just below. The best seldom does.
        """
        mean_predictor = next(iter(self.results))
        return mean_predictor if mean_predictor in self.kl and self.is_near_best(mean_predictor) else self.best

    @property
    def simpler(self) -> list[str]:
        """Candidates before the recommended one that are within one standard error of the best."""
        names = list(self.kl)
        return [name for name in names[: names.index(self.recommended)] if self.is_near_best(name)]

    @property
    def reason(self) -> str:
        """The reason for the recommendation, in one sentence."""
        if (taken := self.recommended) == (best := self.best):
            near = f"; simpler and within one standard error of it: {', '.join(self.simpler)}" if self.simpler else ""
            return f"{taken} has the lowest mean KL, {self.kl[taken].mean():.4f}{near}"
        behind = self.kl[taken] - self.kl[best]
        return (
            f"features are not shown to help: {taken} does without them, and its mean KL is {behind.mean():.4f} above "
            f"that of {best}, {self.kl[best].mean():.4f}, with a standard error of {standard_error(behind):.4f}"
        )

    @property
    def p(self) -> dict[str, float]:
        """p of each candidate that has not failed, by :func:`against_best`."""
        return against_best(self.kl, "kl", self.ratio)

    @property
    def rater_p(self) -> dict[str, float]:
        """The same for ``rater_nll``; empty if raters are unknown."""
        return against_best(self.rater_nll, "rater_nll", self.ratio) if self.rater_nll else {}

    @property
    def ranks(self) -> np.ndarray:
        """(folds, candidates) ranks of those that have not failed; 1 is best."""
        return rankdata(np.stack(list(self.kl.values()), axis=1), axis=1)

    def seconds(self, name: str) -> float:
        """Return the mean time of a fold, with the choice of the setting."""
        return float(np.mean([row["seconds"] for row in self.results[name]]))


def _has_rater_model(measures: dict[str, float]) -> bool:
    """Return whether a vote is predicted differently for different raters."""
    names = ("rater_nll", "vote_nll_weighted")
    return all(name in measures for name in names) and not math.isclose(
        *(measures[name] for name in names), rel_tol=1e-5
    )


def _failure(row: Result) -> str:
    if "error" in row:
        return str(row["error"])
    kl = row["measures"]["kl"]
    return "" if math.isfinite(kl) else f"the mean KL over the test rows is {kl}"
