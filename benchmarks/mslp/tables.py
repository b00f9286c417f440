"""Tables 2 and 3 of Peng et al. 2018, its list of datasets, and its ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import fmean

import numpy as np

from benchmarks.common.claims import Claim, Number, Statement
from benchmarks.common.folds import FOLDS
from benchmarks.common.items import Work
from benchmarks.mslp.choice import MEASURES, Candidate, open_set, test
from benchmarks.mslp.embeddings import cca, lpp, mslp, npe, pca, projected, whole
from benchmarks.mslp.published import FIGURES, FIRST, SETS
from ldl.cells.store import Row
from ldl.comparison.figures import direction
from ldl.comparison.statistics import standard_error

SCALINGS = ("standard", "quantile_normal")
LINEAR = {"scaling": SCALINGS, "kernel": ("linear", "rbf")}
PROJECTIONS = {name: projected(project) for name, project in (("LPP", lpp), ("NPE", npe), ("PCA", pca), ("CCA", cca))}
FOILS = (
    Candidate("AA-kNN", whole, {"scaling": ("none", *SCALINGS)}, ratios=(None,)),
    *(Candidate(name, each, LINEAR, ratios=(0.4, 0.6, 0.8, 1.0, 3.0)) for name, each in PROJECTIONS.items()),
)
"""They choose among whatever MSLP does."""
PLAIN = (
    Candidate("AA-kNN", whole, {"scaling": ("standard",)}, ratios=(None,)),
    *(Candidate(name, each, {"scaling": ("standard",), "kernel": ("linear",)}) for name, each in PROJECTIONS.items()),
)
"""They choose dimensions and neighbours alone, and have no more dimensions than there are labels."""
PRINTED = Candidate("MSLP, as printed", mslp, {"centred": (False,), "scaling": ("none", "standard")})
OURS = Candidate(
    "MSLP",
    mslp,
    {
        "metric": ("commute",), "landmarks": (500,), "spread": (4.0,), "sigma": (0.3,), "negatives": (5,),
        "scaling": SCALINGS, "kernel": ("linear", "rbf"),
    },
    ratios=(3.0,),
)  # fmt: skip


def measured(work: Work, name: str, candidate: Candidate) -> list[Row]:
    """A row a fold of a set, each measured once; in a small form the first setting alone, and one fold."""
    if work.quick:
        candidate = replace(candidate, grid={key: some[:1] for key, some in candidate.grid.items()})
    cells = work.shared("cells_of_tables")
    return [
        cells.cell(
            {"set": name, "method": candidate.name, "fold": fold, "spec": candidate.spec},
            partial(test, name, candidate, fold),
        )
        for fold in range(1 if work.quick else FOLDS)
    ]


def values(rows: Iterable[Row], measure: str) -> tuple[float, ...]:
    """A measure's value a fold."""
    return tuple(row["measures"][measure] for row in rows)


def datasets(work: Work) -> Iterator[Claim]:
    """The slide "Datasets"."""
    for name, sizes in SETS.items():
        data = open_set(name, "none", 0)
        found = len(data.columns["target"]), len(data.labels), data.input_shape[0]
        for what, ours, published in zip(("rows", "labels", "features"), found, sizes):
            yield Number(f"{name}, {what}", (ours,), published, digits=0)


def table(work: Work, name: str, candidates: Iterable[Candidate] = (*FOILS, PRINTED, OURS)) -> Iterator[Claim]:
    """The six measures of a set: of the paper's methods, and of MSLP's problem as printed, which stands beside."""
    for candidate in candidates:
        rows = measured(work, name, candidate)
        printed = FIGURES[name].get(candidate.name)
        for number, measure in enumerate(MEASURES):
            published = printed[number] if printed else None
            lower = direction(measure) > 0
            peer = candidate in FOILS
            yield Number(f"{candidate.name}, {measure}", values(rows, measure), published, lower=lower, peer=peer)


def ranks(work: Work) -> Iterator[Claim]:
    """In how many cases, of set and measure, MSLP has the best mean over the folds, and what was tried."""
    for ours in (OURS, PRINTED):
        yield _count(f"{ours.name} ranks first", _cases(work, ours), first)
    shares = [measure for measure in MEASURES if measure not in ("clark", "canberra")]
    for claim, cases, rule in (
        ("MSLP ranks first, Clark and Canberra left out", _cases(work, OURS, measures=shares), first),
        ("MSLP ranks first, or is within one standard error of it", _cases(work, OURS), level),
        ("MSLP ranks first of linear foils with no more dimensions than labels", _cases(work, OURS, PLAIN), first),
    ):
        yield _count(claim, cases, rule, attempt=True)


Case = tuple[np.ndarray, list[np.ndarray]]
"""Losses (folds,) of MSLP, and of its foils."""


def _cases(
    work: Work, ours: Candidate, foils: Sequence[Candidate] = FOILS, measures: Sequence[str] = MEASURES
) -> Iterator[Case]:
    for name in ("SJAFFE",) if work.quick else SETS:
        found = [measured(work, name, candidate) for candidate in (ours, *foils)]
        for measure in measures:
            mine, *theirs = (direction(measure) * np.array(values(rows, measure)) for rows in found)
            yield mine, theirs


def first(mine: np.ndarray, theirs: list[np.ndarray]) -> bool:
    """Whether a mean over the folds is below all others."""
    return all(mine.mean() < other.mean() for other in theirs)


def level(mine: np.ndarray, theirs: list[np.ndarray]) -> bool:
    """Whether no mean is lower by more than the standard error of the paired difference."""
    return all((mine - other).mean() <= standard_error(mine - other) for other in theirs)


def _count(claim: str, cases: Iterable[Case], rule: Callable[..., bool], attempt: bool = False) -> Statement:
    firsts = [rule(*case) for case in cases]
    told = f"in {sum(firsts)} of {len(firsts)} cases"
    return Statement(claim, fmean(firsts) >= FIRST, told, f"in {FIRST:.1%} of 30 cases", attempt)
