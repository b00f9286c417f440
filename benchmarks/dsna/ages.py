"""How ages are predicted from FG-NET's appearance features: the cost-sensitive forest, DSNA on it, and foils."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone

from benchmarks.common.folds import fit_rows
from benchmarks.dsna.foils import FOILS, OFFSET
from benchmarks.dsna.persons import Method, People, Predictor, Setting, grid
from ldl.heads import DSNA, CostSensitiveForest
from ldl.methods.dsna.neighbourhood import gather_leaves

FOREST, HULL, SHIPPED = "CS-RF", "CS-RF+AH", "CS-RF+DSNA"
AVERAGE = "average of the neighbours"
FULL = "CS-RF+DSNA, K clusters, ten rounds"

OBLIQUE: Setting = {"features": 1.0, "log_offset": OFFSET, "min_samples": 20, "penalty": 5.0, "trees": 50}
"""The forest of ``configs/runs/fgnet_aam``."""
PAPERS_FOREST: Setting = {"features": None, "log_offset": None, "min_samples": 5, "penalty": 5.0, "trees": 20}
"""The root of the features, ages as they are: section III-B and IV-A."""
ONE: Setting = {"clusters": 1, "rounds": 1, "width": 0.1, "sparsity": 0.05, "attraction": 2.0}
"""DSNA of ``configs/runs/fgnet_aam``."""
ALGORITHM: Setting = {**ONE, "clusters": 3, "rounds": 10, "start": "cluster"}
"""Algorithm 1 with the K in the middle of the published range."""
AXES: list[list[Setting]] = [
    [{**ALGORITHM, "clusters": clusters} for clusters in (2, 3, 4)],
    [{"start": "forest"}],
    grid(attraction=[0.5, 8.0]),
    grid(width=[0.03, 0.3]),
    [{"sparsity": 0.01}],
]
"""How the full algorithm is chosen. ``tau`` only scales the width, and how many neighbours the anchor has (N_k) is the
width's matter too."""


def foil(people: People, name: str) -> Method:
    """One of :data:`benchmarks.dsna.foils.FOILS`."""
    make, settings = FOILS[name]

    def predict(train: np.ndarray, test: np.ndarray, setting: Setting, later: list[Setting]) -> list[np.ndarray]:
        model = clone(make(**setting)).fit(people.features[train], people.values[train])
        return [model.predict(people.features[test])]

    return Method(name, predict, settings)


def oblique(people: People) -> Predictor:
    """Predictions by one fit: of the cost-sensitive forest, where there are no options, else of DSNA with them.

    ``average`` takes all neighbours alike.
    """
    before = DSNA()

    def predict(train: np.ndarray, test: np.ndarray, setting: Setting, later: list[Setting]) -> list[np.ndarray]:
        head = fit_rows(DSNA(**setting, tolerance=1e-4, seed=0), people.data, people.inputs, train)
        predicted = []
        for options in later:
            if "average" in options:
                near = gather_leaves(head.forest, head.leaves(people.inputs[test]))
                known = np.ma.masked_array(people.values[train][near.rows], ~near.real.numpy())
                predicted.append(known.mean(1).data)
                continue
            for name in ("start", "rounds", "width", "sparsity", "attraction", "clusters", "squared"):
                setattr(head, name, options.get(name, getattr(before, name)))
            estimate = DSNA.point_estimate if options else CostSensitiveForest.point_estimate
            value = estimate(head, people.inputs[test])
            assert value is not None
            predicted.append(value.double().numpy())
        return predicted

    return predict


def table1(people: People) -> Method:
    """The cost-sensitive forest, the affine hull without labels and DSNA as they are shipped."""
    stages: dict[str, list[list[Setting]]] = {
        FOREST: [[{}]],
        HULL: [[{**ONE, "attraction": 0.0}]],
        SHIPPED: [[{**ONE, "attraction": attraction} for attraction in (0.5, 2.0)]],
    }
    settings = [{**OBLIQUE, "trees": trees, "kernel": "linear"} for trees in (50, 20)]
    return Method("table1", oblique(people), settings, stages)


def full(people: People) -> Method:
    """The full algorithm, chosen as the shipped one is, on a forest of the paper's 20 trees."""
    return Method("full", oblique(people), [{**OBLIQUE, "trees": 20}], {FOREST: [[{}]], SHIPPED: [[ONE]], FULL: AXES})


SIDE_BY_SIDE: dict[str, tuple[Setting, dict[str, Setting]]] = {
    "20 trees": (
        {**OBLIQUE, "trees": 20},
        {
            FOREST: {},
            "DSNA, K = 1, one round (as shipped)": ONE,
            "DSNA, K = 1, ten rounds": {**ONE, "rounds": 10},
            **{f"DSNA, K = {k}, ten rounds": {**ONE, "clusters": k, "rounds": 10} for k in (2, 3, 4)},
            "DSNA, K = 3, ten rounds, start from the cluster (Algorithm 1)": ALGORITHM,
        },
    ),
    "the paper's forest": (PAPERS_FOREST, {FOREST: {}, "DSNA as shipped": ONE, "Algorithm 1": ALGORITHM}),
    "20 trees, leaves of up to 80 rows": (
        {**OBLIQUE, "trees": 20, "min_samples": 80},
        {FOREST: {}, "DSNA as shipped": ONE, "width 0.3": {**ONE, "width": 0.3}, "Algorithm 1": ALGORITHM},
    ),
}
"""What is compared on the same fits, with nothing chosen: by forest, its setting and what is done on it."""


def small(method: Method) -> Method:
    """The same code on next to nothing: few trees, one or two of each choice."""
    settings = [{**setting, **({"trees": 2} if "trees" in setting else {})} for setting in method.settings[:2]]
    stages = {name: [axis[:2] for axis in axes[:2]] for name, axes in method.stages.items()}
    return Method(method.name, method.predict, settings, stages)
