"""Ages of FG-NET: Tables I and II, Figures 7 and 8 of Huang, Loy & Tang 2016."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.common.claims import Claim, Number, Statement
from benchmarks.common.items import Work
from benchmarks.dsna.ages import FOREST, FULL, HULL, SHIPPED, SIDE_BY_SIDE, foil, full, oblique, small, table1
from benchmarks.dsna.foils import FOILS
from benchmarks.dsna.persons import Method, People, Setting, better, inner_of_chosen, predict_all, read_people
from benchmarks.dsna.published import TABLE1_AGE, TABLE2_FGNET
from ldl.cells.store import Row
from ldl.charts.drawing import new_figure, save
from ldl.metrics.groups import band_groups

OLD = 40
FOLDS = 5


class Ages:
    """Absolute errors of the methods, measured once for all items."""

    def __init__(self, work: Work) -> None:
        self.work = work.shared("fgnet")
        self.people = read_people(work.quick)
        self.values = self.people.values[self.people.rows]

    def sized(self, method: Method) -> Method:
        """The method, or its small form."""
        return small(method) if self.work.quick else method

    def error(self, name: str) -> np.ndarray:
        """(rows,), each person predicted by a model of all others."""
        method = self.sized(foil(self.people, name) if name in FOILS else table1(self.people))
        predicted = predict_all(self.work, self.people, method)
        return np.abs(predicted[name if name in predicted else ""] - self.values)

    def tried(self) -> dict[str, np.ndarray]:
        """(rows,) of the forest, of the hull without labels, and of the full algorithm, chosen in the same way."""
        method = self.sized(full(self.people))
        whole = predict_all(self.work, self.people, method, [FULL])[FULL]
        return {FOREST: self.error(FOREST), HULL: self.error(HULL), FULL: np.abs(whole - self.values)}


def band_of(name: str) -> int:
    """The least age of a decade such as ``40_49``."""
    return int(name.split("_")[0])


def ages(work: Work) -> Iterator[Claim]:
    """Table I, age."""
    found = Ages(work)
    errors = {name: found.error(name) for name in (*TABLE1_AGE, *(name for name in FOILS if name not in TABLE1_AGE))}
    for name, error in errors.items():
        printed = TABLE1_AGE.get(name)
        yield Number(f"age, {name}", (float(error.mean()),), printed, digits=2, peer=name in FOILS)
    persons = found.people.persons[found.people.rows]
    for one, other in (("RF", FOREST), ("RED-SVM", FOREST), (FOREST, SHIPPED), (HULL, SHIPPED)):
        yield better(f"age, {other} is better than {one}", persons, errors[one], errors[other])
    yield from side_by_side(found.work, found.people)
    method = found.sized(full(found.people))
    for name, inner in inner_of_chosen(found.work, found.people, method).items():
        yield Number(f"age, 20 trees, {name}: the quarters' inner folds", inner, digits=3, attempt=True)


def side_by_side(work: Work, people: People) -> Iterator[Claim]:
    """What clusters and rounds do on the same fits, in five folds of whole persons, with nothing chosen."""
    people = people._replace(data=read_people(False, protocol="group_exclusive", folds=FOLDS).data)
    for forest, (setting, options) in SIDE_BY_SIDE.items():
        setting = {**setting, "trees": 2} if work.quick else setting
        found: dict[str, tuple[float, ...]] = dict.fromkeys(options, ())
        for fold in range(2 if work.quick else FOLDS):
            key: Row = {"side by side": options, "setting": setting, "fold": fold}
            for name, error in work.cell(key, partial(_fold, people, setting, options, fold))["errors"].items():
                found[name] += (error,)
        for name, errors in found.items():
            words = f"age, {forest}, {name}: five folds of persons, nothing chosen"
            yield Number(words, errors, digits=3, attempt=True)


def _fold(people: People, setting: Setting, options: dict[str, Setting], fold: int) -> Row:
    people.data.select_fold(fold)
    train, test = (np.intersect1d(part, people.rows) for part in (people.data.split.train, people.data.split.test))
    predicted = oblique(people)(train, test, setting, list(options.values()))
    errors = [float(np.abs(part - people.values[test]).mean()) for part in predicted]
    return {"errors": dict(zip(options, errors))}


def table2(work: Work) -> Iterator[Claim]:
    """Table II, FG-NET."""
    found = Ages(work)
    ours = {name: float(found.error(name).mean()) for name in ("RED-SVM", "OHRank", SHIPPED)}
    for name, error in ours.items():
        yield Number(f"FG-NET, {name}", (error,), TABLE2_FGNET[name], digits=2, peer=name in FOILS)
    best = min((error, name) for name, error in TABLE2_FGNET.items() if name != SHIPPED)
    yield Statement(
        f"FG-NET, CS-RF+DSNA is better than the best of the others that are printed, {best[1]}",
        ours[SHIPPED] < best[0],
        f"{ours[SHIPPED]:.2f}, {best[1]} {best[0]:.2f}",
        f"{TABLE2_FGNET[SHIPPED]:.2f}, {best[1]} {best[0]:.2f}",
    )
    for way, whole in found.tried().items():
        yield Number(f"FG-NET, {way}", (float(whole.mean()),), TABLE2_FGNET[SHIPPED], digits=2, attempt=True)


def figure8(work: Work) -> Iterator[Claim]:
    """MAE by decades, beside OHRank."""
    found = Ages(work)
    errors = {name: found.error(name) for name in ("OHRank", FOREST, SHIPPED)}
    bands = [band for band in band_groups(found.values, found.people.data.labels) if band[1].any()]
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
    gains = [decades["OHRank"][band] - decades[SHIPPED][band] for band, _ in bands]
    old = [gain for gain, (band, _) in zip(gains, bands) if band_of(band) >= OLD]
    young = [gain for gain, (band, _) in zip(gains, bands) if band_of(band) < OLD]
    yield Statement(
        f"from {OLD} years on CS-RF+DSNA is better than OHRank in every decade",
        bool(old) and min(old) > 0,
        "gains " + ", ".join(f"{gain:.1f}" for gain in old),
    )
    for way, whole in found.tried().items():
        each = [decades["OHRank"][band] - float(whole[rows].mean()) for band, rows in bands if band_of(band) >= OLD]
        yield Statement(
            f"from {OLD} years on {way} is better than OHRank in every decade",
            bool(each) and min(each) > 0,
            "gains " + ", ".join(f"{gain:.1f}" for gain in each),
            attempt=True,
        )
    yield Statement(
        "its gain is larger at old ages than at others",
        bool(old) and float(np.mean(old)) > float(np.mean(young)),
        f"{np.mean(old) if old else np.nan:.1f} from {OLD} years on, {np.mean(young):.1f} below, means over decades",
    )
