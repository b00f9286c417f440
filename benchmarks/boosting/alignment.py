"""Figure 8 of Babenko et al. 2008, and the alignment errors of Section 3.1."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.boosting.places import ADA_BOOST
from benchmarks.boosting.published import ALIGNMENT
from benchmarks.boosting.trials import DRAWS, Methods, found_places, values
from benchmarks.common.claims import Claim, Number, Statement
from benchmarks.common.items import Work
from ldl import charts

ALIGNED, CENTRED = ADA_BOOST
LSE: dict[str, Any] = {"pooling": "lse", "r": 150.0}
MAIN = "LSE, real"
SOFT_MAXIMA: Methods = {
    MAIN: LSE,
    "GM, real": {"pooling": "gm", "r": 20.0},
    "NOR, real": {"pooling": "nor"},
    "ISR, real": {"pooling": "isr"},
}
DISCRETE: Methods = {"LSE, discrete": {**LSE, "real": False}}
PLAIN = "LSE, r 20, steps as long as the line search finds"
FREE: Methods = {PLAIN: {**LSE, "r": 20.0, "max_step": 100.0}}
OTHERS: Methods = {ALIGNED: {}, CENTRED: {}}
EARLY = 4
"""Stumps after which the error is compared with that of all."""
WAYS: dict[str, Methods] = {
    "another soft maximum": {name: options for name, options in SOFT_MAXIMA.items() if name != MAIN},
    "less sharp": {"LSE, r 20": {**LSE, "r": 20.0}},
    "less sharp, longer steps": FREE,
    "cut by the bound": {"LSE, cut by the bound": {**LSE, "cut": "bound"}},
}
"""To align faces better than AdaBoost does; of each way the method that errs least on pictures of other draws."""


def errors(work: Work, kind: str) -> Iterator[Claim]:
    """Figure 8: equal error rates, and their curves as a chart."""
    found = found_places(work, kind, {**SOFT_MAXIMA, **DISCRETE, **OTHERS})
    curves = {method: np.mean([row["curve"] for row in rows], 0) for method, rows in found.items()}
    charts.error_curves(work.folder / "equal_error_rates.png", curves, f"mean of {len(found[MAIN])} trials")
    rates = {method: values(rows, "eer") for method, rows in found.items()}
    yield less("MIL-Boost errs less than AdaBoost on data that are not aligned (d)", rates, MAIN, CENTRED)
    few, many = (curves[MAIN][stumps - 1] for stumps in (EARLY, len(curves[MAIN])))
    told = f"{few:.3f} after {EARLY} stumps, {many:.3f} after {len(curves[MAIN])}"
    yield Statement("MIL-Boost errs less the more weak classifiers (c)", bool(many < few), told)
    if kind == "faces":
        claim = "AdaBoost with aligned data has the lower error"
        yield less(f"{claim} (text)", rates, ALIGNED, MAIN)
        for other in [method for method in rates if method not in (MAIN, *OTHERS)]:
            yield less(f"{claim}: than {other}", rates, ALIGNED, other, attempt=True)
    for method, each in rates.items():
        yield Number(f"{method}, equal error rate", each, digits=3)


def alignment(work: Work, kind: str) -> Iterator[Claim]:
    """The alignment errors of the text; published figures of digits alone, since the faces are others."""
    found = found_places(work, kind, {**SOFT_MAXIMA, **DISCRETE, **FREE, **OTHERS})
    published = ALIGNMENT[kind]
    for ours, place, words in ((MAIN, "alignment", ""), (PLAIN, "peak", "as printed: ")):
        errors = {"MIL-Boost": values(found[ours], place), "AdaBoost": values(found[ALIGNED], place)}
        for name, each in errors.items():
            theirs = published[name] if kind == "digits" else None
            yield Number(f"{words}{name}", each, theirs, digits=2, peer=name == "AdaBoost")
        printed = ", ".join(f"{name} {error:.2f}" for name, error in published.items())
        yield less(f"{words}MIL-Boost aligns better than AdaBoost", errors, "MIL-Boost", "AdaBoost", printed)
    for method, rows in found.items():
        if method not in (MAIN, ALIGNED):
            yield Number(method, values(rows, "alignment"), digits=2)
    if kind == "faces":
        yield from tried(work, values(found[ALIGNED], "alignment"))


def tried(work: Work, ada_boost: tuple[float, ...]) -> Iterator[Claim]:
    """Of each way the method with the least alignment error on other draws, on the trials that AdaBoost had."""
    every = {name: options for methods in WAYS.values() for name, options in methods.items()}
    elsewhere = found_places(work, "faces", every, DRAWS)
    means = {name: fmean(values(rows, "alignment")) for name, rows in elsewhere.items()}
    best = {way: min(methods, key=means.__getitem__) for way, methods in WAYS.items()}
    found = found_places(work, "faces", {name: every[name] for name in best.values()})
    for way, name in best.items():
        errors = {name: values(found[name], "alignment"), "AdaBoost": ada_boost}
        yield less(f"{way}: MIL-Boost aligns better than AdaBoost", errors, name, "AdaBoost", attempt=True)


def less(
    claim: str, errors: dict[str, tuple[float, ...]], ours: str, other: str, theirs: str = "", attempt: bool = False
) -> Statement:
    """That the mean error of one method is below that of another."""
    means = {method: fmean(errors[method]) for method in (ours, other)}
    told = ", ".join(f"{method} {mean:.3f}" for method, mean in means.items())
    return Statement(claim, means[ours] < means[other], told, theirs, attempt)
