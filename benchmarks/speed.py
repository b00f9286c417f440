"""Speed of ldl beside other libraries, and beside another checkout of ldl.

    python benchmarks/speed.py                                # every case, beside other libraries
    python benchmarks/speed.py structrf boosted --turns 5
    python benchmarks/speed.py --before CHECKOUT              # every case, now beside another checkout
    python benchmarks/speed.py --page docs/results/engineering.md

A case is a function below under ``@case``. It prepares its data and returns the works to time, of which the first is
ldl's. Works take turns, odd turns backwards, after one call each that compiles and imports. Results are medians over
the turns. Processor times count all threads of a process and depend little on other work on the machine. Data are
random numbers from a seed; ``structured_edges`` needs BSDS500 below ``LDL_DATA``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any

# A child imports ldl from the checkout that it measures, which PYTHONPATH names.
sys.path.insert(0 if "--child" not in sys.argv else len(sys.path), str(Path(__file__).resolve().parents[1]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# A child takes the helpers of the cases from here, because an older checkout may lack them.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

# isort: split
import numpy as np
import torch
from torch import Tensor

from benchmarks.common.data import numbered
from benchmarks.common.script import Seconds, launch, make_parser, show, take_turns, timed, write_block
from ldl.collective import Collective
from ldl.errors import LDLError, did_you_mean
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows

ROOT = Path(__file__).resolve().parents[1]
Works = dict[str, Callable[[], object]]
"""What a case times, by name; the first is ldl's."""

CASES: dict[str, Callable[[], Works]] = {}
OURS = "ldl"
HEADER = ("case", "", "seconds", "processor seconds", "processor time over ldl's")


def case(function: Callable[[], Works]) -> Callable[[], Works]:
    """Register a case under the name of its function."""
    CASES[function.__name__] = function
    return function


def table(rows: int, features: int, labels: int) -> tuple[Tensor, Tensor]:
    """Draw features (N, F) and distributions (N, C) that follow from them with noise, float32."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(rows, features)).astype(np.float32)
    bends = np.tanh(2 * inputs) + inputs * np.roll(inputs, 1, axis=1)
    scores = bends @ rng.normal(size=(features, labels)) * (1.5 / features**0.5) + 0.3 * rng.normal(size=(rows, labels))
    return torch.from_numpy(inputs), torch.from_numpy(scores).softmax(1).float()


def fitted(head: Any, features: Tensor, target: Tensor, values: Tensor | None = None) -> Any:
    """Build and fit a head, on two threads where it has an option for them."""
    if hasattr(head, "threads"):
        head.threads = 2
    labels = LabelSpace.ordinal(range(target.shape[1])) if values is not None else numbered(target.shape[1])
    head.build(features.shape[-1], labels)
    head.fit(Rows(features, target, values), Collective())
    return head


@case
def structrf() -> Works:
    """Fit 20 trees of StructRF, scikit-learn's random forest and extra trees, with all features at every node."""
    from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

    from ldl.heads import StructRF

    features, target = table(6000, 36, 18)
    options: dict[str, Any] = {"n_estimators": 20, "max_depth": 20, "max_features": 1.0, "n_jobs": 2, "random_state": 0}
    make = partial(StructRF, trees=20, depth=20, min_leaf=1, out_of_bag=False, seed=0)
    return {
        OURS: lambda: fitted(make(), features, target),
        "ldl, histograms": lambda: fitted(make(search="histogram"), features, target),
        "random forest": lambda: RandomForestRegressor(max_samples=0.8, **options).fit(features, target),
        "extra trees": lambda: ExtraTreesRegressor(**options).fit(features, target),
    }


@case
def structrf_one_row() -> Works:
    """Predict 200 single rows with 20 fitted trees."""
    from sklearn.ensemble import RandomForestRegressor

    from ldl.heads import StructRF

    features, target = table(2000, 36, 18)
    ours = fitted(StructRF(trees=20, depth=20, out_of_bag=False, seed=0), features, target)
    theirs = RandomForestRegressor(20, max_depth=20, random_state=0).fit(features, target)
    rows = [features[row : row + 1] for row in range(200)]
    return {
        OURS: lambda: [ours(row) for row in rows],
        "random forest": lambda: [theirs.predict(row.numpy()) for row in rows],
    }


@case
def boosted() -> Works:
    """Boost 20 rounds of depth 6. XGBoost learns distributions from rows that are repeated once per label."""
    from ldl.heads import BoostedTrees

    features, target = table(6000, 24, 6)
    make = partial(
        BoostedTrees, rounds=20, learning_rate=0.3, depth=6, l2=0.5, min_leaf=1, sampling=1.0, features=1.0, bins=255,
        patience=None, seed=0,
    )  # fmt: skip
    works: Works = {
        OURS: lambda: fitted(make(trees="vector"), features, target),
        "ldl, one tree per label": lambda: fitted(make(trees="label", learning_rate=0.15), features, target),
    }
    try:
        import xgboost
    except ImportError:
        return works
    options = {"objective": "multi:softprob", "num_class": 6, "tree_method": "hist", "max_depth": 6, "eta": 0.3,
               "min_child_weight": 0.0, "nthread": 2}  # fmt: skip
    repeated, label = features.numpy().repeat(6, axis=0), np.tile(np.arange(6), len(features))

    def boost() -> object:
        data = xgboost.QuantileDMatrix(repeated, label, weight=target.numpy().ravel(), nthread=2)
        return xgboost.train(options, data, 20, verbose_eval=False)

    return {**works, "XGBoost": boost}


@case
def boosted_random() -> Works:
    """Boost 5 rounds of random thresholds, depth 10, on 100,000 rows of 30 features."""
    from ldl.heads import BoostedTrees

    features, target = table(100_000, 30, 6)
    return {OURS: lambda: fitted(BoostedTrees(rounds=5, depth=10, patience=None, seed=0), features, target)}


@case
def boosted_mixed() -> Works:
    """Boost 200 rounds at each depth on 2,000 rows of numbers, categories and missing values with shares of votes."""
    from ldl.heads import BoostedTrees

    features, target = table(2000, 20, 5)
    rng = np.random.default_rng(1)
    features[:, 14:] = (2 * features[:, 14:]).round().clamp(-2, 2)
    features[:, :4][torch.from_numpy(rng.random((2000, 4)) < 0.1)] = torch.nan
    votes = torch.from_numpy(rng.multinomial(rng.integers(5, 30, 2000), target.double() / target.double().sum(1, True)))
    shares = (votes / votes.sum(1, keepdim=True)).float()
    return {OURS: lambda: fitted(BoostedTrees(rounds=200, seed=0), features, shares)}


@case
def ldlf() -> Works:
    """Take 30 training steps of LDLF and of Softmax on features, batch 256, with one leaf update."""
    from ldl.heads import LDLF, Softmax

    features, target = table(256, 512, 101)

    def train(head: Any) -> None:
        torch.manual_seed(0)
        head.build(512, LabelSpace.ordinal(range(101)))
        optimizer = torch.optim.SGD(head.parameters(), 0.1)
        for _ in range(30):
            losses = head.loss(features, target)
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
            if "memory" in losses:
                head.observe(losses["memory"], target)
        if hasattr(head, "update"):
            head.update(Collective())

    return {OURS: lambda: train(LDLF(trees=5, depth=7, outputs=64, batches=30)), "softmax": lambda: train(Softmax())}


@case
def maxent() -> Works:
    """Fit MaxEnt with its penalty chosen; softmax regression of scikit-learn on repeated rows fits one penalty."""
    from sklearn.linear_model import LogisticRegression

    from ldl.heads import MaxEnt

    features, target = table(2000, 50, 6)
    rows, label = features.numpy().repeat(6, axis=0), np.tile(np.arange(6), len(features))
    model = LogisticRegression(max_iter=600, tol=1e-4)
    return {
        OURS: lambda: fitted(MaxEnt(), features, target),
        "logistic regression, 25 fits": lambda: [model.fit(rows, label, target.numpy().ravel()) for _ in range(25)],
    }


@case
def cost_sensitive_forest() -> Works:
    """Grow 10 trees of the cost-sensitive forest on 4,000 x 256 features, and scikit-learn's random forest."""
    from sklearn.ensemble import RandomForestRegressor

    from ldl.heads import CostSensitiveForest

    features, _ = table(4000, 256, 1)
    values = (30 + 25 * torch.tanh(features[:, :20].sum(1) / 4)).round().double()
    target = LabelSpace.ordinal(range(70)).encode(values, 2.0)
    make = partial(CostSensitiveForest, trees=10, depth=10, min_samples=5, sets=5, seed=0)
    baseline = RandomForestRegressor(10, max_depth=10, min_samples_split=5, max_features=None, n_jobs=2, random_state=0)
    return {
        OURS: lambda: fitted(make(), features, target, values),
        "random forest": lambda: baseline.fit(features, values),
    }


@case
def dsna() -> Works:
    """Solve 32 queries of DSNA with 300 members each: working sets, and ADMM on all members."""
    from ldl.methods.dsna.admm import solve
    from ldl.methods.dsna.sparse import approximate

    rng = np.random.default_rng(0)
    points = torch.from_numpy(rng.normal(size=(32, 300, 250)) * np.geomspace(1, 0.02, 250))
    points /= points.square().sum(2).mean().sqrt()
    share, anchors = (torch.from_numpy(rng.dirichlet(np.full(300, 0.05), 32)) for _ in range(2))
    query = (share[:, None] @ points)[:, 0] + 0.5 * points[:, 0]
    none = torch.zeros_like(anchors)
    return {
        OURS: lambda: approximate(points, query, anchors, 0.05, 0.5, tolerance=1e-4),
        "all members": lambda: solve(points, query, anchors, anchors, none, 0.05, 0.5, False, 1e-4, 20_000),
    }


@case
def mslp() -> Works:
    """Fit MSLP on 4,000 x 36 features with 68 labels."""
    from ldl.heads import MSLP

    features, target = table(4000, 36, 68)
    return {OURS: lambda: fitted(MSLP(), features, target)}


@case
def milboost() -> Works:
    """Boost 64 stumps on 2,000 bags of one instance with 500 features; AdaBoost of scikit-learn."""
    from sklearn.ensemble import AdaBoostClassifier
    from sklearn.tree import DecisionTreeClassifier

    from ldl.bags import MILBoost

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 1, 500)).astype(np.float32)
    label = (rows[:, 0, :5].sum(1) > 0).astype(int)
    baseline = AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=64, random_state=0)

    def boost() -> object:
        head = MILBoost(rounds=64, real=True, threads=1, seed=0)
        head.build(500, LabelSpace.nominal(["negative", "positive"]))
        return head.fit(Rows(torch.from_numpy(rows), torch.eye(2)[torch.from_numpy(label)]), Collective())

    return {OURS: boost, "AdaBoost": lambda: baseline.fit(rows[:, 0], label)}


@case
def structured_edges() -> Works:
    """Find the edges of one random image of 481 x 321 with 8 trees that are grown to few patches."""
    from ldl.edges import BSDS500, StructuredEdges
    from ldl.edges.structured.channels import PATCH
    from ldl.edges.structured.patches import make_scene

    rng = np.random.default_rng(0)
    data = BSDS500(crop=PATCH)
    data.setup()
    read = (data.read(row) for row in data.split.train[:8])
    scenes = [
        make_scene(image, truth.boundaries, truth.segments) for image, truth in read if truth.segments is not None
    ]
    head = StructuredEdges(patches=2000, seed=0)
    head.build(3, data.labels)
    head.fit_scenes(scenes, Collective())
    image = torch.from_numpy(rng.integers(0, 256, (1, 321, 481, 3), dtype=np.uint8))
    return {OURS: lambda: head.forward(image)}


@case
def default_run() -> Works:
    """Run ``train.py`` with the built-in digits for two epochs."""
    from ldl.command import main as train

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            options = ["--trainer.max_epochs=2", "--wandb.mode=disabled", "--trainer.enable_progress_bar=false"]
            train([*options, "--run_dir", folder + "/run"])

    return {OURS: run}


TABLE_ROWS, TABLE_FEATURES, TABLE_LABELS, HIDDEN = 10_000, 50, 10, 256
"""Sizes of the cases that train a network with one hidden layer on a table."""
TRAIN_ROWS, VAL_ROWS = 8100, 900
"""Rows to train on and to validate of the first fold of ten."""


@cache
def scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that exists until the process ends."""
    return tempfile.TemporaryDirectory()


def plain_model(head: str) -> Any:
    """Return the network of a head for a plain loop: a softmax, or an LDLF that is built."""
    from benchmarks.common.plain_training import BATCH, EPOCHS, Network
    from ldl.heads import LDLF

    torch.manual_seed(0)
    if head == "Softmax":
        return Network(TABLE_FEATURES, HIDDEN, TABLE_LABELS)
    model = LDLF(hidden=[HIDDEN])
    model.build(TABLE_FEATURES, numbered(TABLE_LABELS))
    batches = -(-TRAIN_ROWS // BATCH)
    model.expect(batches, EPOCHS * batches)
    return model


def write_table(folder: Path) -> Path:
    """Write the table of the cases as a CSV with a header."""
    import pandas as pd

    features, target = table(TABLE_ROWS, TABLE_FEATURES, TABLE_LABELS)
    names = [f"x{number}" for number in range(TABLE_FEATURES)] + [f"label:{number}" for number in range(TABLE_LABELS)]
    path = folder / "table.csv"
    pd.DataFrame(torch.cat([features, target], 1).numpy(), columns=names).to_csv(path, index=False)
    return path


def run_table(head: str, path: Path) -> Seconds:
    """Train and test a head with a hidden layer on a CSV, as the command line does; return the seconds of the fit."""
    from benchmarks.common.plain_training import BATCH, EPOCHS, LEARNING_RATE, FitClock
    from ldl.command import main as train

    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {
            "model.head": head, "model.head.hidden": f"[{HIDDEN}]", "model.backbone": "Identity",
            "model.optimizer": "AdamW", "model.optimizer.lr": LEARNING_RATE,
            "data": "TabularLDL", "data.path": path, "data.batch_size": BATCH, "data.val_fraction": 0.1,
            "trainer.max_epochs": EPOCHS, "trainer.accelerator": "cpu", "trainer.enable_progress_bar": "false",
            "trainer.callbacks": "benchmarks.common.plain_training.FitClock",
            "wandb.mode": "disabled", "run_dir": f"{folder}/run",
        }  # fmt: skip
        train([f"--{name}={value}" for name, value in options.items()])
    return FitClock.last


def fits_of(head: str) -> Works:
    """Return the fits of a head on a table: in a run of ldl, in a plain loop of torch, and in plain Lightning."""
    from benchmarks.common.plain_training import fit_lightning, fit_torch

    path = write_table(Path(scratch().name))
    data = (*table(TABLE_ROWS, TABLE_FEATURES, TABLE_LABELS), TRAIN_ROWS, VAL_ROWS)
    return {
        OURS: lambda: run_table(head, path),
        "plain torch": lambda: fit_torch(plain_model(head), *data),
        "plain Lightning": lambda: fit_lightning(plain_model(head), *data),
    }


def runs_of(head: str) -> Works:
    """Return runs of a head on a CSV, with a test and files of its results: of ldl, and with a plain loop of torch."""
    from benchmarks.common.plain_training import run_torch

    folder = Path(scratch().name)
    path = write_table(folder)

    def run() -> None:
        run_table(head, path)

    return {
        OURS: run,
        "plain torch": lambda: run_torch(plain_model(head), path, folder, TABLE_LABELS, TRAIN_ROWS, VAL_ROWS),
    }


@case
def softmax_table() -> Works:
    """Fit Softmax with a hidden layer of 256 on 10,000 x 50 for 20 epochs of batch 64; only the fit is measured."""
    return fits_of("Softmax")


@case
def softmax_table_run() -> Works:
    """Run the training of ``softmax_table`` from the CSV to the results and charts."""
    return runs_of("Softmax")


@case
def ldlf_table() -> Works:
    """Fit LDLF with a hidden layer of 256 on 10,000 x 50 for 20 epochs of batch 64; only the fit is measured."""
    return fits_of("LDLF")


@case
def ldlf_table_run() -> Works:
    """Run the training of ``ldlf_table`` from the CSV to the results and charts."""
    return runs_of("LDLF")


@case
def read_csv() -> Works:
    """Read a CSV of 200,000 x 30 for a data module: items, features, values, and their checks."""
    from benchmarks.common.plain_reading import readings_of

    return readings_of("csv", Path(scratch().name))


@case
def read_parquet() -> Works:
    """Read the same table from Parquet."""
    from benchmarks.common.plain_reading import readings_of

    return readings_of("parquet", Path(scratch().name))


def measure(name: str, turns: int) -> dict[str, Seconds]:
    """Return the medians of a case."""
    works = CASES[name]()
    for work in works.values():
        work()
    found = take_turns(works, turns, lambda work, _: timed(works[work]))
    return {work: Seconds(*(median(column) for column in zip(*times))) for work, times in found.items()}


def in_checkout(name: str, checkout: Path) -> Seconds:
    """Measure ldl's work of a case once, in a process that imports ldl from a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    command = [sys.executable, str(Path(__file__).resolve()), name, "--child"]
    done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise LDLError(f"{name} fails with the checkout {checkout}: {' '.join(done.stderr.split())[-300:]}")
    return Seconds(*json.loads(done.stdout.splitlines()[-1]))


def compare_checkouts(name: str, before: Path, turns: int) -> dict[str, Seconds]:
    """Return the medians of a case in this checkout and in another one."""
    places = {"now": ROOT, "before": before.resolve()}
    found = take_turns(places, turns, lambda place, _: in_checkout(name, places[place]))
    return {place: Seconds(*(median(column) for column in zip(*times))) for place, times in found.items()}


def main() -> None:
    """Measure the cases and print a table."""
    parser = make_parser(__doc__, block="speed")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)} (default: all)")
    parser.add_argument("--before", type=Path, help="another checkout of ldl to compare with")
    parser.add_argument("--turns", type=int, default=3, help="(default: %(default)s)")
    parser.add_argument("--child", action="store_true", help="measure ldl's work of one case once, and print JSON")
    options = parser.parse_args()
    if unknown := [name for name in options.cases if name not in CASES]:
        raise LDLError(f"no case {unknown[0]!r}{did_you_mean(unknown[0], CASES)}; there are {', '.join(CASES)}")
    if options.child:
        work = next(iter(CASES[options.cases[0]]().values()))
        work()
        print(json.dumps(timed(work)))
        return
    rows = []
    for name in options.cases or CASES:
        before, turns = options.before, options.turns
        found = compare_checkouts(name, before, turns) if before else measure(name, turns)
        ours = next(iter(found.values())).processor
        for label, took in found.items():
            rows.append([name, label, f"{took.clock:.2f}", f"{took.processor:.2f}", f"{took.processor / ours:.2f}"])
            print(*rows[-1], sep="  ", flush=True)
    show(f"medians of {options.turns} turns", HEADER, rows)
    if options.page:
        from ldl.reports.files import markdown

        write_block(options.page, "speed", markdown(HEADER, rows))


if __name__ == "__main__":
    launch(main)
