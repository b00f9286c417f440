"""What a comparison came to: the KL of every candidate on every fold, and which one to take."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import rankdata

from ldl.cells.store import Row
from ldl.comparison.statistics import against_best, best_of, standard_error


@dataclass(frozen=True)
class Outcome:
    """The cells of a comparison by candidate; a candidate without a finite KL on every fold is out.

    Attributes:
        cells: Of each candidate in the order of the folds: first the foil, the mean predictor, then the simplest.
        ratio: Tested rows for each row of the training part, as tests over the folds take it.
        kl: (folds,) mean KL of each candidate that is not out.
        failed: Why the others are, in one line each.
    """

    cells: dict[str, list[Row]]
    ratio: float | None = None
    kl: dict[str, np.ndarray] = field(init=False, default_factory=dict)
    failed: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name, cells in self.cells.items():
            wrong = (f"fold {cell['fold']}: {reason}" for cell in cells if (reason := _reason(cell)))
            if reason := next(wrong, ""):
                self.failed[name] = reason
            else:
                self.kl[name] = np.array([cell["measures"]["kl"] for cell in cells])

    @property
    def foil(self) -> str:
        """The first candidate, which does without features."""
        return next(iter(self.cells))

    @property
    def best(self) -> str:
        """The candidate with the lowest mean KL."""
        return best_of(self.kl, "kl")

    def within(self, name: str) -> bool:
        """Whether a candidate is within one standard error of the best, of their differences over the folds."""
        difference = self.kl[name] - self.kl[self.best]
        return float(difference.mean()) <= np.nan_to_num(standard_error(difference))

    @property
    def recommended(self) -> str:
        """The best, unless the foil is within one standard error of it: then features are not shown to help.

        The simplest within one standard error, whoever it is (Breiman et al. 1984), would be a candidate that loses a
        whole one as often as not, where it came in just below; the best seldom does.
        """
        return self.foil if self.foil in self.kl and self.within(self.foil) else self.best

    @property
    def simpler(self) -> list[str]:
        """Those before the recommended one that are within one standard error of it, for whom simple is worth it."""
        names = list(self.kl)
        return [name for name in names[: names.index(self.recommended)] if self.within(name)]

    @property
    def reason(self) -> str:
        """Why that one, in a sentence."""
        if (taken := self.recommended) == (best := self.best):
            near = f"; simpler and within one standard error of it: {', '.join(self.simpler)}" if self.simpler else ""
            return f"{taken} has the lowest mean KL, {self.kl[taken].mean():.4f}{near}"
        behind = self.kl[taken] - self.kl[best]
        return (
            f"features are not shown to help: {taken} does without them, and its mean KL is {behind.mean():.4f} above "
            f"that of {best}, {self.kl[best].mean():.4f}, give or take {standard_error(behind):.4f}"
        )

    @property
    def p(self) -> dict[str, float]:
        """Of each candidate that is not out, of :func:`ldl.comparison.statistics.against_best`."""
        return against_best(self.kl, "kl", self.ratio)

    @property
    def ranks(self) -> np.ndarray:
        """(folds, candidates) of those that are not out, 1 is best."""
        return rankdata(np.stack(list(self.kl.values()), axis=1), axis=1)

    def seconds(self, name: str) -> float:
        """Mean over the folds, with the choice of the setting."""
        return float(np.mean([cell["seconds"] for cell in self.cells[name]]))


def _reason(cell: Row) -> str:
    if "error" in cell:
        return str(cell["error"])
    kl = cell["measures"]["kl"]
    return "" if math.isfinite(kl) else f"the mean KL over the test rows is {kl}"
