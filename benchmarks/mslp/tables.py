"""Tables 2 and 3 of Peng et al. 2018, its list of datasets, and its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from statistics import fmean

from benchmarks.common.claims import Claim, Number, Statement
from benchmarks.common.folds import FOLDS
from benchmarks.common.items import Work
from benchmarks.mslp.choice import MEASURES, Candidate, open_set, test
from benchmarks.mslp.embeddings import cca, lpp, mslp, npe, pca, projected, whole
from benchmarks.mslp.published import FIGURES, FIRST, SETS
from ldl.cells.store import Row
from ldl.comparison.figures import direction

SCALINGS = ("standard", "quantile_normal")
LINEAR = {"scaling": SCALINGS, "kernel": ("linear", "rbf")}
FOILS = (
    Candidate("AA-kNN", whole, {"scaling": ("none", *SCALINGS)}, ratios=(None,)),
    *(
        Candidate(name, projected(project), LINEAR, ratios=(0.4, 0.6, 0.8, 1.0, 3.0))
        for name, project in (("LPP", lpp), ("NPE", npe), ("PCA", pca), ("CCA", cca))
    ),
)
"""They choose among whatever MSLP does."""
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
    """In how many cases, of set and measure, MSLP has the best mean over the folds."""
    for ours in (OURS, PRINTED):
        firsts = cases = 0
        for name in ("SJAFFE",) if work.quick else SETS:
            found = {other.name: measured(work, name, other) for other in (*FOILS, ours)}
            for measure in MEASURES:
                means = {method: direction(measure) * fmean(values(rows, measure)) for method, rows in found.items()}
                cases += 1
                firsts += min(means, key=means.__getitem__) == ours.name
        yield Statement(
            f"{ours.name} ranks first",
            firsts / cases >= FIRST,
            f"in {firsts} of {cases} cases",
            f"in {FIRST:.1%} of 30 cases",
        )
