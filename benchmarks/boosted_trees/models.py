"""What the benchmark of boosted trees measures: data, competitors of equal settings, and one measurement of each."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.common.folds import numbered, read_set
from benchmarks.common.timing import Seconds, seconds
from benchmarks.structrf.speed import start_of_peak, status_mb
from benchmarks.tables.peers import Rows, XGBoost, repeat
from ldl.collective import Collective
from ldl.heads import BoostedTrees
from ldl.metrics.functional import kl

OURS, OURS_RANDOM, OURS_LABEL, THEIRS, THEIRS_SOFT = MODELS = (
    "BoostedTrees", "BoostedTrees, random cuts", "BoostedTrees, a tree a label", "XGBoost, repeated rows",
    "XGBoost, objective from outside",
)  # fmt: skip


class Setting(NamedTuple):
    """What all competitors share; ``eta`` and ``l2`` are XGBoost's."""

    rounds: int
    depth: int = 6
    bins: int = 255
    eta: float = 0.3
    l2: float = 1.0
    threads: int = 2


class Measured(NamedTuple):
    """One measurement.

    Attributes:
        first: Seconds until one round is done, with all that comes before it.
        each: Seconds of every further round.
        memory: MB that fitting added at its peak; NaN where it was not asked for.
        kl: Mean KL divergence of the test rows after all rounds.
    """

    first: Seconds
    each: Seconds
    memory: float
    kl: float


def made(rows: int, features: int, labels: int) -> Rows:
    """Distributions that follow from a few bends and products of normal features, with noise; float32, from a seed."""
    rng = np.random.default_rng(0)
    inputs = rng.normal(size=(rows, features)).astype(np.float32)
    bends = np.tanh(2 * inputs) + inputs * np.roll(inputs, 1, axis=1)
    scores = bends @ rng.normal(size=(features, labels)) * (1.5 / features**0.5) + 0.3 * rng.normal(size=(rows, labels))
    mass = np.exp(scores - scores.max(1, keepdims=True))
    return Rows(inputs, (mass / mass.sum(1, keepdims=True)).astype(np.float32))


def load(source: str) -> Rows:
    """A set of LDL_DATA by name, or made-up rows by their shape, such as ``30542x36x68``."""
    if source[:1].isdigit():
        rows, features, labels = map(int, source.split("x"))
        return made(rows, features, labels)
    inputs, target = read_set(source)
    return Rows(inputs.numpy(), target.numpy())


def fit(model: str, rows: Rows, setting: Setting) -> Callable[[np.ndarray], np.ndarray]:
    """Boost all rounds; what predicts.

    On rows that are repeated XGBoost doubles the second derivatives of the KL divergence, so that half its step and
    half its penalty are the same here, see :class:`ldl.heads.BoostedTrees`. That is what a tree a label gets. One tree
    with a vector in each leaf fits less in a round than as many trees as labels, and takes the whole of ``eta``.
    """
    features, target = rows
    if model == THEIRS:
        return fit_repeated(rows, setting)
    if model == THEIRS_SOFT:
        peer = XGBoost(
            rounds=setting.rounds, patience=None, learning_rate=setting.eta, depth=setting.depth, l2=setting.l2,
            sampling=1.0, columns=1.0, min_child_weight=0.0, bins=setting.bins, threads=setting.threads,
        )  # fmt: skip
        peer.fit(features, target)
        return peer.predict
    step = setting.eta / 2 if model == OURS_LABEL else setting.eta
    head = BoostedTrees(
        rounds=setting.rounds, learning_rate=step, depth=setting.depth, l2=setting.l2 / 2, min_leaf=1,
        sampling=1.0, features=1.0, search="random" if model == OURS_RANDOM else "histogram", bins=setting.bins,
        patience=None, trees="label" if model == OURS_LABEL else "vector", seed=0, threads=setting.threads,
    )  # fmt: skip
    head.build(features.shape[1], numbered(target.shape[1]))
    head.fit(torch.from_numpy(features), torch.from_numpy(target), Collective())
    return lambda inputs: head(torch.from_numpy(inputs)).numpy()


def fit_repeated(rows: Rows, setting: Setting) -> Callable[[np.ndarray], np.ndarray]:
    """XGBoost's own multi-class loss on rows repeated once a label; what predicts."""
    # Here, because it is no dependency.
    import xgboost

    repeated = repeat(rows)
    options = {
        "objective": "multi:softprob", "num_class": rows.target.shape[1], "tree_method": "hist",
        "max_bin": setting.bins, "eta": setting.eta, "max_depth": setting.depth, "lambda": setting.l2,
        "min_child_weight": 0.0, "nthread": setting.threads,
    }  # fmt: skip
    data = xgboost.QuantileDMatrix(
        repeated.features, repeated.label, weight=repeated.weight, max_bin=setting.bins, nthread=setting.threads
    )
    return xgboost.train(options, data, setting.rounds, verbose_eval=False).inplace_predict


def measure(model: str, source: str, setting: Setting, memory: bool) -> Measured:
    """Fit one round, then all; a tenth of the rows is for the test."""
    features, target = load(source)
    cut = len(target) - len(target) // 10
    train = Rows(features[:cut], target[:cut])
    one = setting._replace(rounds=1)
    # Compilation and imports are paid here.
    fit(model, Rows(features[:200], target[:200]), one)
    first = seconds(lambda: fit(model, train, one))
    before = start_of_peak() if memory else np.nan
    predict = []
    whole = seconds(lambda: predict.append(fit(model, train, setting)))
    added = status_mb("VmHWM") - before if memory else np.nan
    more = max(setting.rounds - 1, 1)
    each = Seconds((whole.clock - first.clock) / more, (whole.processor - first.processor) / more)
    divergence = kl(torch.from_numpy(predict[0](features[cut:])).double(), torch.from_numpy(target[cut:]).double())
    return Measured(first, each, added, float(divergence.mean()))


def measure_apart(model: str, source: str, setting: Setting) -> Measured:
    """:func:`measure` in a process of its own, with memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measure, model, source, setting, True).result()
