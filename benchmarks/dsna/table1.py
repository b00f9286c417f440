"""Age from FG-NET's appearance features, leave one person out: Table I and Figure 8 of Huang, Loy & Tang 2016.

    python benchmarks/dsna/table1.py [--out fgnet_aam_cells --chart fgnet_aam.png]

A plain forest, one with rows weighted by inverse label frequency, the cost-sensitive forest, and on its neighbours the
affine hull without labels and DSNA; foils are ridge regression and SVR, on ages and on log ages.

Settings are chosen by MAE for each quarter of the persons, by person-exclusive cross-validation in three folds of the
other three quarters, the same folds for every method; a tested person never helps to choose. Then every person is
predicted by a model of all others, with the settings of the person's quarter.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.svm import SVR

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import fit_rows, inputs_of
from benchmarks.common.tables import write_block
from ldl.cells.store import Row, Store
from ldl.charts.drawing import save
from ldl.data import FGNETAAM
from ldl.heads import DSNA, CostSensitiveForest
from ldl.metrics.groups import band_groups
from ldl.reports.files import markdown

QUARTERS, INNER = 4, 3
OFFSET = 2.0
"""Years that are added before a logarithm."""
OLD = 40
PUBLISHED = {"plain forest": "5.28", "cost-sensitive forest": "4.81", "+ affine hull": "4.89", "+ DSNA": "4.10"}
"""MAE of the paper's Table I."""

Setting = dict[str, Any]
Predictor = Callable[[np.ndarray, np.ndarray, Setting, list[Setting]], list[np.ndarray]]

FOREST: Setting = {"features": 1.0, "log_offset": OFFSET, "min_samples": 20, "tolerance": 1e-4, "seed": 0}
HULL: Setting = {"clusters": 1, "attraction": 0.0, "rounds": 1}


def grid(**choices: list[Any]) -> list[Setting]:
    """All combinations."""
    return [dict(zip(choices, values)) for values in itertools.product(*choices.values())]


def main() -> None:
    """Choose, test, print the table and draw the chart."""
    parser = make_parser(__doc__, threads=1, block="dsna_table1")
    parser.add_argument("--only", nargs="+", help="names of methods; default all")
    parser.add_argument("--out", type=Path, default=Path("fgnet_aam_cells"), help="kept, and gone on with")
    parser.add_argument("--chart", type=Path, default=Path("fgnet_aam.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = FGNETAAM()
    data.setup()
    assert data.values is not None and data.groups is not None
    store, errors = Store(options.out), {}
    for predictor, first, stages in methods(data):
        key: Row = {"methods": list(stages)}
        start = time.perf_counter()
        wanted = not options.only or bool(set(options.only) & set(stages))
        found = store.cell(key, partial(predict_all, data, predictor, first, stages)) if wanted else store.find(key)
        if found is None:
            continue
        for name in stages:
            errors[name] = np.abs(np.array(found[name]["predicted"]) - data.values)
            if wanted:
                whole, old = means(errors[name], data.values)
                print(f"{name:24}{whole:>7}   {OLD} and over {old:>6}", flush=True)
        if wanted:
            print(f"{'':24}{time.perf_counter() - start:.0f} s", flush=True)
    bands = band_groups(data.values, data.labels)
    decades = {name: {band: float(error[members].mean()) for band, members in bands} for name, error in errors.items()}
    print(draw(decades, options.chart))
    if options.page:
        rows = [[name, *means(error, data.values), PUBLISHED.get(name, "")] for name, error in errors.items()]
        write_block(options.page, "dsna_table1", markdown(["", "MAE in years", f"{OLD} and over", "published"], rows))


def means(error: np.ndarray, values: np.ndarray) -> tuple[str, str]:
    """The MAE of all rows, and that of the old."""
    return f"{error.mean():.3f}", f"{error[values >= OLD].mean():.2f}"


def methods(data: FGNETAAM) -> list[tuple[Predictor, list[Setting], dict[str, list[Setting]]]]:
    """How to predict, the settings of the fit, and for each name the settings of what is done with one fit."""
    inputs = inputs_of(data)
    features = inputs.double().numpy()
    features = features / np.sqrt(np.square(features).sum(1).mean())
    values = data.values
    assert values is not None

    def foil(make: Callable[..., Any], log: bool = False) -> Predictor:
        def predict(train: np.ndarray, test: np.ndarray, setting: Setting, later: list[Setting]) -> list[np.ndarray]:
            target = np.log(values[train] + OFFSET) if log else values[train]
            predicted = make(**setting).fit(features[train], target).predict(features[test])
            return [np.exp(predicted) - OFFSET if log else predicted]

        return predict

    def forest(weighted: bool) -> Predictor:
        def predict(train: np.ndarray, test: np.ndarray, setting: Setting, later: list[Setting]) -> list[np.ndarray]:
            labels, counts = np.unique(values[train], return_counts=True)
            weights = 1 / counts[np.searchsorted(labels, values[train])] if weighted else None
            model = RandomForestRegressor(20, max_depth=10, random_state=0, **setting)
            return [model.fit(features[train], values[train], weights).predict(features[test])]

        return predict

    def cost_sensitive(train: np.ndarray, test: np.ndarray, setting: Setting, later: list[Setting]) -> list[np.ndarray]:
        head = fit_rows(DSNA(**FOREST, **setting), data, inputs, train)
        predicted = []
        for options in later:
            if not options:
                value = CostSensitiveForest.point_estimate(head, inputs[test])
            else:
                for name, option in options.items():
                    setattr(head, name, option)
                value = head.point_estimate(inputs[test])
            assert value is not None
            predicted.append(value.numpy())
        return predicted

    nothing: list[Setting] = [{}]
    kernels = [
        *grid(kernel=["linear"], penalty=[5.0], trees=[20, 50]),
        *grid(kernel=["sum"], gamma=[0.3], penalty=[10.0], trees=[20, 50]),
    ]
    svr = grid(C=[30.0, 100.0, 300.0], gamma=[0.1, 0.3, 1.0])
    log_svr = grid(C=[1.0, 3.0, 10.0], gamma=[0.1, 0.3, 1.0], epsilon=[0.05, 0.1])
    trees = grid(max_features=["sqrt", 0.3], min_samples_split=[5, 10])
    stages = {
        "cost-sensitive forest": nothing,
        "+ affine hull": [{**HULL, "sparsity": 1.0}],
        "+ DSNA": grid(clusters=[1], rounds=[1], width=[0.1], sparsity=[0.05], attraction=[0.5, 2.0]),
    }
    return [
        (foil(Ridge), grid(alpha=[0.03, 0.1, 0.3, 1.0]), {"ridge": nothing}),
        (foil(SVR), svr, {"SVR": nothing}),
        (foil(SVR, log=True), log_svr, {"SVR on log age": nothing}),
        (forest(False), trees, {"plain forest": nothing}),
        (forest(True), trees, {"weighted forest": nothing}),
        (cost_sensitive, kernels, stages),
    ]


def predict_all(data: FGNETAAM, predictor: Predictor, first: list[Setting], stages: dict[str, list[Setting]]) -> Row:
    """For each name of ``stages`` the settings ``chosen`` for each quarter, and all rows as ``predicted``.

    The setting of the fit is chosen for the first name, which has one; those of the others given it.
    """
    values, persons = data.values, data.groups
    assert values is not None and persons is not None
    quarter = np.random.default_rng(0).permutation(persons.max() + 1) % QUARTERS
    steps = [options for many in stages.values() for options in many]
    ends = np.cumsum([len(many) for many in stages.values()])
    spans = {name: (int(end) - len(stages[name]), int(end)) for name, end in zip(stages, ends)}
    best: dict[str, list[Setting]] = {name: [] for name in stages}
    fits: list[Setting] = []
    for tested in range(QUARTERS):
        free = np.flatnonzero(quarter != tested)
        inner = np.random.default_rng(tested).permutation(free)
        rest = np.isin(persons, free)
        tests = [np.isin(persons, inner[fold::INNER]) for fold in range(INNER)]
        folds = [(np.flatnonzero(rest & ~test), np.flatnonzero(test)) for test in tests]
        total = partial(total_errors, predictor, values, folds)
        fits.append(min(first, key=lambda setting: total(setting, steps[:1])[0]) if len(first) > 1 else first[0])
        errors = total(fits[-1], steps)
        for name, (begin, end) in spans.items():
            best[name].append(steps[begin + int(errors[begin:end].argmin())])
    output = {name: np.empty(len(values)) for name in stages}
    for person in np.unique(persons):
        test, train = np.flatnonzero(persons == person), np.flatnonzero(persons != person)
        own = quarter[person]
        parts = predictor(train, test, fits[own], [best[name][own] for name in stages])
        for name, part in zip(stages, parts):
            output[name][test] = part
    return {
        name: {"chosen": [{**a, **b} for a, b in zip(fits, best[name])], "predicted": output[name].tolist()}
        for name in stages
    }


def total_errors(
    predictor: Predictor,
    values: np.ndarray,
    folds: list[tuple[np.ndarray, np.ndarray]],
    setting: Setting,
    options: list[Setting],
) -> np.ndarray:
    """Summed absolute errors over the folds, of each of the options."""
    errors = np.zeros(len(options))
    for train, test in folds:
        errors += [np.abs(part - values[test]).sum() for part in predictor(train, test, setting, options)]
    return errors


def draw(decades: dict[str, dict[str, float]], path: Path) -> Path:
    """MAE of every method by decade."""
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    axis = figure.subplots()
    for place, (name, errors) in enumerate(decades.items()):
        x = np.arange(len(errors)) + (place - (len(decades) - 1) / 2) * 0.8 / len(decades)
        color = "tab:red" if name == "+ DSNA" else f"C{place}" if place != 3 else "0.5"
        axis.bar(x, list(errors.values()), 0.8 / len(decades), label=name, color=color)
    axis.set_xticks(range(len(errors)), [name.replace("_", "\u2013") for name in errors])
    axis.set(xlabel="true age in years", ylabel="MAE in years", title="FG-NET, leave one person out")
    axis.legend(fontsize=8)
    return save(figure, path)


if __name__ == "__main__":
    launch(main)
