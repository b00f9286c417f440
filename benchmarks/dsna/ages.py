"""Ages of FG-NET: Tables I and II and Figures 3, 7 and 8 of Huang, Loy & Tang 2016."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from sklearn.base import clone

from benchmarks.common.data import fit_rows
from benchmarks.common.items import Claim, Number, Statement, Work, read_published
from benchmarks.dsna import edges
from benchmarks.dsna.baselines import BASELINES, OFFSET
from benchmarks.dsna.subjects import Method, Predictor, Setting, Subjects, better, predict_all, read_subjects
from ldl.charts.drawing import new_figure, save
from ldl.heads import DSNA, CostSensitiveForest
from ldl.jobs.store import Key, Result
from ldl.methods.dsna.clusters import gather_leaves
from ldl.metrics.ordinal import band_groups

FOREST, HULL, SHIPPED = "CS-RF", "CS-RF+AH", "CS-RF+DSNA"
AVERAGE = "average of the neighbours"
PUBLISHED = read_published("dsna")

OBLIQUE: Setting = {"features": 1.0, "log_offset": OFFSET, "min_samples": 20, "penalty": 5.0, "trees": 50}
"""The forest of ``configs/runs/fgnet_aam``."""
ONE: Setting = {"clusters": 1, "rounds": 1, "width": 0.1, "sparsity": 0.05, "attraction": 2.0}
"""DSNA of ``configs/runs/fgnet_aam``."""
ESTIMATES: dict[str, Setting] = {AVERAGE: {"average": True}, FOREST: {}, SHIPPED: ONE}

FOLDS, STEP = 5, 5
OLD = 40
"""Age in years from which ages are rare."""
Parts = list[tuple[np.ndarray, np.ndarray]]
"""Pairs of training rows and test rows."""


def oblique(subjects: Subjects) -> Predictor:
    """Return a predictor by one forest. Options of a prediction are DSNA's.

    Without options the cost-sensitive forest itself predicts; ``average`` weighs all neighbours alike.
    """

    def predict(train: np.ndarray, test: np.ndarray, setting: Setting, later: list[Setting]) -> list[np.ndarray]:
        head = fit_rows(DSNA(**setting, tolerance=1e-4, seed=0), subjects.data, subjects.inputs, train)
        predicted = []
        for options in later:
            if "average" in options:
                near = gather_leaves(head.forest, head.leaves(subjects.inputs[test]))
                known = np.ma.masked_array(subjects.values[train][near.rows], ~near.real.numpy())
                predicted.append(known.mean(1).data)
                continue
            for name, option in options.items():
                setattr(head, name, option)
            estimate = DSNA.point_estimate if options else CostSensitiveForest.point_estimate
            value = estimate(head, subjects.inputs[test])
            assert value is not None
            predicted.append(value.double().numpy())
        return predicted

    return predict


class Ages:
    """Absolute errors of the methods of Table I, measured once for all items."""

    def __init__(self, work: Work) -> None:
        self.work = work.shared("fgnet")
        self.subjects = read_subjects(work.quick)
        self.values = self.subjects.values[self.subjects.rows]

    def error(self, name: str) -> np.ndarray:
        """Return the errors (rows,), each subject predicted by a model of all others."""
        predicted = predict_all(self.work, self.subjects, self._method(name))
        return np.abs(predicted[name if name in predicted else ""] - self.values)

    def _method(self, name: str) -> Method:
        if name in BASELINES:
            method = Method(name, self._baseline(name), BASELINES[name][1])
        else:
            stages: dict[str, list[Setting]] = {
                FOREST: [{}],
                HULL: [{**ONE, "attraction": 0.0}],
                SHIPPED: [{**ONE, "attraction": attraction} for attraction in (0.5, 2.0)],
            }
            settings = [{**OBLIQUE, "trees": trees, "kernel": "linear"} for trees in (50, 20)]
            method = Method("table1", oblique(self.subjects), settings, stages)
        if not self.work.quick:
            return method
        small = [{**setting, **({"trees": 2} if "trees" in setting else {})} for setting in method.settings[:2]]
        return Method(method.name, method.predict, small, method.stages)

    def _baseline(self, name: str) -> Predictor:
        people, make = self.subjects, BASELINES[name][0]

        def predict(train: np.ndarray, test: np.ndarray, setting: Setting, later: list[Setting]) -> list[np.ndarray]:
            model = clone(make(**setting)).fit(people.features[train], people.values[train])
            return [model.predict(people.features[test])]

        return predict


def table_1(work: Work) -> Iterator[Claim]:
    """Table I: ages and edges."""
    ages, printed = Ages(work), PUBLISHED["table_1_age"]
    errors = {name: ages.error(name) for name in (*printed, *(name for name in BASELINES if name not in printed))}
    for name, error in errors.items():
        mean, baseline = float(error.mean()), name in BASELINES
        yield Number(f"age, {name}", (mean,), printed.get(name), digits=2, baseline=baseline)
    groups = ages.subjects.groups[ages.subjects.rows]
    for one, other in (("RF", FOREST), ("RED-SVM", FOREST), (FOREST, SHIPPED), (HULL, SHIPPED)):
        yield better(f"age, {other} is better than {one}", groups, errors[one], errors[other])
    yield from edges.table_1(work)


def table_2(work: Work) -> Iterator[Claim]:
    """Table II, FG-NET."""
    ages, printed = Ages(work), PUBLISHED["table_2"]
    ours = {name: float(ages.error(name).mean()) for name in ("RED-SVM", "OHRank", SHIPPED)}
    for name, error in ours.items():
        yield Number(f"FG-NET, {name}", (error,), printed[name], digits=2, baseline=name in BASELINES)
    best = min((error, name) for name, error in printed.items() if name != SHIPPED)
    yield Statement(
        f"FG-NET, CS-RF+DSNA is better than the best of the others that are printed, {best[1]}",
        ours[SHIPPED] < best[0],
        f"{ours[SHIPPED]:.2f}, {best[1]} {best[0]:.2f}",
        f"{printed[SHIPPED]:.2f}, {best[1]} {best[0]:.2f}",
    )


def figure_8(work: Work) -> Iterator[Claim]:
    """MAE by decades, beside OHRank."""
    ages = Ages(work)
    errors = {name: ages.error(name) for name in ("OHRank", FOREST, SHIPPED)}
    bands = [band for band in band_groups(ages.values, ages.subjects.data.labels).items() if band[1].any()]
    decades = {name: {band: float(error[rows].mean()) for band, rows in bands} for name, error in errors.items()}
    figure, axis = new_figure(8, 4)
    for place, (name, by_decade) in enumerate(decades.items()):
        axis.bar(np.arange(len(bands)) + (place - 1) * 0.27, list(by_decade.values()), 0.27, label=name)
    axis.set_xticks(range(len(bands)), [band.replace("_", "\u2013") for band, _ in bands])
    axis.set(xlabel="true age in years", ylabel="MAE in years", title="FG-NET, leave one person out")
    axis.legend()
    save(figure, work.folder / "decades.png")
    for name, by_decade in decades.items():
        for band, error in by_decade.items():
            yield Number(f"{name}, {band.replace('_', ' to ')} years", (error,), digits=2)
    gains = {int(band.split("_")[0]): decades["OHRank"][band] - decades[SHIPPED][band] for band, _ in bands}
    old, young = ([gain for age, gain in gains.items() if (age >= OLD) == side] for side in (True, False))
    yield Statement(
        f"from {OLD} years on CS-RF+DSNA is better than OHRank in every decade",
        bool(old) and min(old) > 0,
        "gains " + ", ".join(f"{gain:.1f}" for gain in old),
    )
    yield Statement(
        "its gain is larger at old ages than at others",
        bool(old) and float(np.mean(old)) > float(np.mean(young)),
        f"{np.mean(old) if old else np.nan:.1f} from {OLD} years on, {np.mean(young):.1f} below, means over decades",
    )


def figure_3(work: Work) -> Iterator[Claim]:
    """Ages that training never saw: every fifth age, and then all old ones together."""
    subjects = read_subjects(work.quick, protocol="group_exclusive", folds=FOLDS)
    values = subjects.values

    def one_by_one(train: np.ndarray, test: np.ndarray) -> Parts:
        return [(train[values[train] % STEP != rest], test[values[test] % STEP == rest]) for rest in range(STEP)]

    def together(train: np.ndarray, test: np.ndarray) -> Parts:
        return [(train[values[train] < OLD], test[values[test] >= OLD])]

    single = _predictions(work, subjects, "one by one", one_by_one)
    yield from _errors("age unseen, all ages", subjects, single)
    rare = {name: np.where(values >= OLD, predicted, np.nan) for name, predicted in single.items()}
    yield from _compared(f"age unseen, {OLD} and over", subjects, rare)
    yield from _compared(f"all ages from {OLD} unseen", subjects, _predictions(work, subjects, "together", together))


def figure_7(work: Work) -> Iterator[Claim]:
    """Rare ages that training saw, and edges."""
    subjects = read_subjects(work.quick, protocol="group_exclusive", folds=FOLDS)
    values = subjects.values
    found = _predictions(work, subjects, "rare", lambda train, test: [(train, test[values[test] >= OLD])])
    yield from _compared(f"age, {OLD} and over", subjects, found)
    figure, axis = new_figure(5, 4.4)
    axis.axline((OLD, OLD), slope=1, color="0.5", linewidth=1)
    for name, predicted in found.items():
        axis.scatter(values, predicted, s=12, label=name)
    axis.set(xlabel="true age in years", ylabel="predicted", title="FG-NET, rare ages")
    axis.legend()
    save(figure, work.folder / "rare.png")
    yield from edges.figure_7(work)


def _predictions(
    work: Work, subjects: Subjects, name: str, parts: Callable[[np.ndarray, np.ndarray], Parts]
) -> dict[str, np.ndarray]:
    """Return the predictions of the test rows of all folds by each of ESTIMATES, (N,), NaN for other rows."""
    setting = {**OBLIQUE, "trees": 2} if work.quick else OBLIQUE
    found = {estimate: np.full(len(subjects.values), np.nan) for estimate in ESTIMATES}
    for fold in range(FOLDS):
        key: Key = {"case": name, "setting": setting, "fold": fold, "options": ESTIMATES}
        row = work.result(key, partial(_fold, subjects, fold, parts, setting))
        for estimate, predicted in row["predicted"].items():
            found[estimate][row["rows"]] = predicted
    return found


def _fold(subjects: Subjects, fold: int, parts: Callable[[np.ndarray, np.ndarray], Parts], setting: Setting) -> Result:
    subjects.data.select_fold(fold)
    split = subjects.data.split
    train, test = (np.intersect1d(part, subjects.rows) for part in (split.train, split.test))
    rows: list[int] = []
    predicted: dict[str, list[float]] = {name: [] for name in ESTIMATES}
    for known, tested in parts(train, test):
        if len(tested):
            rows += tested.tolist()
            for name, values in zip(ESTIMATES, oblique(subjects)(known, tested, setting, list(ESTIMATES.values()))):
                predicted[name] += values.tolist()
    return {"rows": rows, "predicted": predicted}


def _errors(name: str, subjects: Subjects, found: dict[str, np.ndarray]) -> Iterator[Claim]:
    for which, predicted in found.items():
        error = float(np.nanmean(np.abs(predicted - subjects.values)))
        yield Number(f"{name}: {which}", (error,), digits=2)


def _compared(name: str, subjects: Subjects, found: dict[str, np.ndarray]) -> Iterator[Claim]:
    """Show the errors, and judge whether DSNA's is less than that of the neighbours' average."""
    yield from _errors(name, subjects, found)
    tested = np.flatnonzero(~np.isnan(found[SHIPPED]))
    errors = {which: np.abs(predicted - subjects.values)[tested] for which, predicted in found.items()}
    claim = f"{name}: DSNA is nearer than the {AVERAGE}"
    yield better(claim, subjects.groups[tested], errors[AVERAGE], errors[SHIPPED])
