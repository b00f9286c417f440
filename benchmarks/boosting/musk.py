"""Bag accuracy on musk1: MILBoost beside AdaBoost on instances and a competing package.

    python benchmarks/boosting/musk.py [--path mil/musk1.csv --seeds 5 --folds 10 --methods MILBoost AdaBoost NSK]

Every seed cuts stratified folds of bags. Each fold chooses the hyperparameters of every method by stratified folds
inside its training set (the mean of accuracy and AUC there) and tests once. NSK is the normalised set kernel of the
package ``sawmil``. It is left out unless that is installed: ``pip install sawmil osqp``.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
import torch
from sklearn.ensemble import AdaBoostClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from benchmarks.common.data import data_file
from benchmarks.common.script import launch, make_parser, write_block
from ldl.bags import MILBoost
from ldl.bags.bags import read_bags
from ldl.collective import Collective
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.reports.files import markdown
from ldl.search.statistics import spread

BagList = list[np.ndarray]
Setting = dict[str, Any]
Method = Callable[[BagList, np.ndarray, BagList, Setting], np.ndarray]

WAYS: list[Setting] = [{}, {"features": 0.1, "shrinkage": 0.3, "rounds": 100}]
POOLINGS: list[Setting] = [{"r": 2.0}, {"r": 5.0}, {"r": 20.0}, {"pooling": "nor"}]
GRIDS: dict[str, list[Setting]] = {
    "MILBoost": [{**way, **pooling} for way in WAYS for pooling in POOLINGS],
    "AdaBoost": [{"n_estimators": 64}],
    "NSK": [{"gamma": gamma, "C": c} for gamma in (0.001, 0.003, 0.01) for c in (1.0, 10.0)],
}  # fmt: skip


def mil_boost(bags: BagList, label: np.ndarray, tested: BagList, setting: Setting) -> np.ndarray:
    """Return the log odds of the test bags."""
    head = MILBoost(seed=0, threads=1, **setting)
    head.build(bags[0].shape[1], LabelSpace.nominal(["negative", "positive"]))
    head.fit(Rows(padded(bags), torch.eye(2)[torch.from_numpy(label)]), Collective())
    log = head.double()(padded(tested).double()).log()
    return (log[:, 1] - log[:, 0]).numpy()


def padded(bags: BagList) -> torch.Tensor:
    """Return bags as a tensor (B, J, F), in which missing instances are NaN."""
    tensors = [torch.tensor(bag, dtype=torch.float32) for bag in bags]
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=torch.nan)


def ada_boost(bags: BagList, label: np.ndarray, tested: BagList, setting: Setting) -> np.ndarray:
    """Boost instances with their bag's label, and return the largest score of each test bag's instances."""
    model = AdaBoostClassifier(random_state=0, **setting)
    model.fit(np.concatenate(bags), np.repeat(label, [len(bag) for bag in bags]))
    scores = model.decision_function(np.concatenate(tested))
    return np.array([part.max() for part in np.split(scores, np.cumsum([len(bag) for bag in tested])[:-1])])


def normalised_set_kernel(bags: BagList, label: np.ndarray, tested: BagList, setting: Setting) -> np.ndarray:
    """Return the scores of the normalised set kernel machine of the package ``sawmil``, with RBF kernels."""
    from sawmil import NSK, RBF, Bag

    scaler = StandardScaler().fit(np.concatenate(bags))
    bags, tested = ([scaler.transform(bag) for bag in part] for part in (bags, tested))
    kernel = RBF(gamma=setting["gamma"])
    model = NSK(C=setting["C"], kernel=kernel, solver="osqp", normalizer="featurespace", scale_C=False)
    model.fit([Bag(X=bag, y=float(2 * y - 1)) for bag, y in zip(bags, label)])
    return model.decision_function([Bag(X=bag, y=0.0) for bag in tested])


METHODS: dict[str, Method] = {
    "MILBoost": mil_boost,
    "AdaBoost": ada_boost,
    "NSK": normalised_set_kernel,
}
TITLES = {
    "MILBoost": "`MILBoost`",
    "AdaBoost": "scikit-learn's AdaBoost on instances",
    "NSK": "normalised set kernel (`sawmil`)",
}
"""The methods as the page names them."""


def choose(method: Method, grid: list[Setting], bags: BagList, label: np.ndarray, folds: int, seed: int) -> Setting:
    """Return the hyperparameters with the best mean of accuracy and AUC over inner folds."""
    results = []
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=seed).split(label, label))
    for setting in grid:
        scores = np.zeros(len(label))
        for train, test in splits:
            scores[test] = method([bags[i] for i in train], label[train], [bags[i] for i in test], setting)
        results.append(((scores > 0) == label).mean() + roc_auc_score(label, scores))
    return grid[int(np.argmax(results))]


def cross_validate(name: str, bags: BagList, label: np.ndarray, options: argparse.Namespace, seed: int) -> np.ndarray:
    """Return the scores of all bags, each from the fold that tests it."""
    scores = np.zeros(len(label))
    for train, test in StratifiedKFold(options.folds, shuffle=True, random_state=seed).split(label, label):
        bags_in, label_in = [bags[i] for i in train], label[train]
        setting = choose(METHODS[name], GRIDS[name], bags_in, label_in, options.inner, seed)
        scores[test] = METHODS[name](bags_in, label_in, [bags[i] for i in test], setting)
        options.chosen.append(str(setting))
    return scores


def main() -> None:
    """Print accuracy and AUC of every method, mean and standard deviation over the seeds."""
    parser = make_parser(__doc__, block="musk")
    parser.add_argument("--path", default="mil/musk1.csv", help="a bag table under LDL_DATA (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--inner", type=int, default=3, help="folds inside a training set (default: %(default)s)")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = read_bags(data_file(options.path))
    bags = np.split(table.features, np.bincount(table.bag).cumsum()[:-1])
    print(f"{options.path}: {len(bags)} bags, {options.folds} folds by bag, {options.seeds} seeds")
    rows = []
    for name in options.methods:
        start, options.chosen = time.perf_counter(), []
        try:
            scores = [cross_validate(name, bags, table.label, options, seed) for seed in range(options.seeds)]
        except ImportError as error:
            print(f"  {name:10} left out: {error}", flush=True)
            continue
        accuracy = [((score > 0) == table.label).mean() for score in scores]
        auc = [roc_auc_score(table.label, score) for score in scores]
        often = max(set(options.chosen), key=options.chosen.count)
        print(
            f"  {name:10} accuracy {spread(accuracy)}, AUC {spread(auc)}, {time.perf_counter() - start:.0f} s, "
            f"{options.chosen.count(often)} of {len(options.chosen)} folds chose {often}",
            flush=True,
        )
        rows.append([TITLES[name], spread(accuracy), spread(auc)])
    if options.page:
        protocol = f"{options.folds} folds by bag; mean ± standard deviation over {options.seeds} seeds."
        text = markdown(["method", "accuracy of bags", "AUC"], rows)
        write_block(options.page, "musk", f"{protocol}\n\n{text}")


if __name__ == "__main__":
    launch(main)
