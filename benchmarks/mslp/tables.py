"""Tables 2 and 3 of Peng et al. 2018, and its ranks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.common.data import FOLDS
from benchmarks.common.items import Claim, Number, Statement, Work, read_published
from benchmarks.mslp.choice import METRICS, Candidate, test
from benchmarks.mslp.embeddings import cca, lpp, mslp, npe, pca, projected, whole
from ldl.jobs.store import Result
from ldl.search.statistics import sign_of

PUBLISHED = read_published("mslp")
SETS = ("SJAFFE", "SBU_3DFE", "SCUT_FBP", "M2B", "Natural_Scene")
SCALINGS = ("standard", "quantile_normal")
LINEAR = {"scaling": SCALINGS, "kernel": ("linear", "rbf")}
PROJECTIONS = {name: projected(project) for name, project in (("LPP", lpp), ("NPE", npe), ("PCA", pca), ("CCA", cca))}
BASELINES = (
    Candidate("AA-kNN", whole, {"scaling": ("none", *SCALINGS)}, ratios=(None,)),
    *(Candidate(name, each, LINEAR, ratios=(0.4, 0.6, 0.8, 1.0, 3.0)) for name, each in PROJECTIONS.items()),
)
"""They choose among the same hyperparameters as MSLP."""
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


def table(work: Work, name: str) -> Iterator[Claim]:
    """Judge the six metrics of MSLP on a set, and show the baselines and MSLP's problem as printed beside them."""
    for candidate in (*BASELINES, PRINTED, OURS):
        rows = _measured(work, name, candidate)
        printed = PUBLISHED["tables"][name].get(candidate.name)
        for number, metric in enumerate(METRICS):
            published = printed[number] if printed else None
            lower, baseline = sign_of(metric) > 0, candidate in BASELINES
            yield Number(
                f"{candidate.name}, {metric}", _values(rows, metric), published, lower=lower, baseline=baseline
            )


def ranks(work: Work) -> Iterator[Claim]:
    """Judge in how many cases, of set and metric, MSLP has the best mean over the folds."""
    first = PUBLISHED["first"]
    for ours in (OURS, PRINTED):
        ahead = []
        for name in ("SJAFFE",) if work.quick else SETS:
            found = [_measured(work, name, candidate) for candidate in (ours, *BASELINES)]
            for metric in METRICS:
                mine, *theirs = (sign_of(metric) * np.mean(_values(rows, metric)) for rows in found)
                ahead.append(all(mine < other for other in theirs))
        share, words = sum(ahead) / len(ahead), f"in {sum(ahead)} of {len(ahead)} cases"
        yield Statement(f"{ours.name} ranks first", share >= first, words, f"in {first:.1%} of 30 cases")


def _measured(work: Work, name: str, candidate: Candidate) -> list[Result]:
    """Return a row per fold of a set; in a small form of the first hyperparameters and one fold."""
    if work.quick:
        candidate = replace(candidate, grid={key: some[:1] for key, some in candidate.grid.items()})
    return [
        work.shared("tables").result(
            {"set": name, "method": candidate.name, "fold": fold, "spec": candidate.spec},
            partial(test, name, candidate, fold),
        )
        for fold in range(1 if work.quick else FOLDS)
    ]


def _values(rows: list[Result], metric: str) -> tuple[float, ...]:
    return tuple(row["metrics"][metric] for row in rows)
