"""Next votes: which items should get further votes, on CIFAR-10H and FER+.

Every item starts with two of its votes. ``BUDGET`` further votes are bought in batches and drawn from the votes that
remain on the chosen items; half of them are held out and measure the posterior of votes and model. The model is MaxEnt
on frozen features, which predicts each item from other folds. Votes on an item come in one random order for each seed,
which all strategies share.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from scipy.special import entr
from sklearn.decomposition import PCA

from benchmarks.annotations import frozen, standardised
from benchmarks.common.script import launch, make_parser, write_block
from ldl.annotations import DirichletMixture, expected_gain, vote_nll
from ldl.annotations.mixture import Posterior, combiner_in_words
from ldl.collective import Collective
from ldl.data import CIFAR10H, FERPlus
from ldl.heads import MaxEnt
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.protocols import kfold
from ldl.reports.files import markdown

BUDGET, BATCH, START = 2000, 50, 2
FOLDS, SEEDS, DIMENSIONS = 5, 5, 128
LEAST_VOTES = 6
"""Votes of an item that takes part: two to start with, and two to buy and to hold out."""
BOOTSTRAP_SAMPLES, LEVEL = 2000, 0.95
SETS: dict[str, Callable[[], CIFAR10H | FERPlus]] = {
    "CIFAR-10H": lambda: CIFAR10H(crop_size=96, folds=FOLDS, val_fraction=0.0),
    "FER+": lambda: FERPlus(crop_size=96, split_copies=True),
}
RANDOM = "random"


class Strategy(NamedTuple):
    """A rule that chooses items: what predicts votes, and by which score."""

    predictor: str
    score: str


STRATEGIES = [
    *(Strategy("votes and model", score) for score in (RANDOM, "entropy of the model", "entropy", "expected gain")),
    *(Strategy("votes alone", score) for score in (RANDOM, "entropy", "expected gain")),
]


class Pool(NamedTuple):
    """Items of one seed: features (N, F), first votes (N, C), votes to buy in their order, and held-out votes (N, C).

    ``to_buy`` (N, V) has the labels of the votes, and -1 after the last one.
    """

    features: torch.Tensor
    first: np.ndarray
    to_buy: np.ndarray
    held_out: np.ndarray
    groups: np.ndarray | None


class VotePredictor(NamedTuple):
    """What predicts votes: a combiner, and predictions (N, C) that count as some votes, or None."""

    combiner: DirichletMixture
    prediction: np.ndarray | None
    model_votes: float

    def gain(self, counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
        prediction = None if self.prediction is None else self.prediction[rows]
        return expected_gain(counts[rows], self.combiner, prediction, self.model_votes)

    def distribution(self, counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
        if self.prediction is None:
            return self.combiner.posterior_mean(counts[rows])
        posterior = Posterior(self.combiner, self.prediction[rows], self.model_votes)
        posterior.add_counts(counts[rows])
        return posterior.mean()


def load(name: str, folder: Path) -> dict[str, np.ndarray]:
    """Return the features, votes and copies of a set; features are computed once."""
    file = folder / f"features_{name}.npz"
    if not file.is_file():
        data = SETS[name]()
        features = PCA(DIMENSIONS, random_state=0).fit_transform(frozen(data))
        copies = np.arange(data.size) if data.copies is None else data.copies
        np.savez(file, features=features.astype(np.float32), counts=data.counts(np.arange(data.size)), copies=copies)
    with np.load(file) as arrays:
        return dict(arrays)


def deal(arrays: dict[str, np.ndarray], seed: int) -> Pool:
    """Return the items with enough votes, with their votes in a random order."""
    rng = np.random.default_rng(seed)
    rows = np.flatnonzero(arrays["counts"].sum(1) >= LEAST_VOTES)
    counts = arrays["counts"][rows].astype(int)
    labels = np.arange(counts.shape[1])
    to_buy = np.full((len(rows), counts.sum(1).max()), -1)
    first, held_out = np.zeros(counts.shape), np.zeros(counts.shape)
    for row, count in enumerate(counts):
        votes = rng.permutation(np.repeat(labels, count))
        cut = START + (len(votes) - START) // 2
        first[row] = np.bincount(votes[:START], minlength=len(labels))
        to_buy[row, : cut - START] = votes[START:cut]
        held_out[row] = np.bincount(votes[cut:], minlength=len(labels))
    return Pool(standardised(arrays["features"][rows]), first, to_buy, held_out, arrays["copies"][rows])


def predict(pool: Pool, seed: int) -> np.ndarray:
    """Return the predictions (N, C) of each item by a head that is fitted to the first votes on other folds."""
    prediction = np.empty(pool.first.shape)
    shares = torch.tensor(pool.first / START, dtype=torch.float32)
    for number in range(FOLDS):
        fold = kfold(len(shares), FOLDS, number, seed, groups=pool.groups)
        head = MaxEnt(l2=0.01)
        head.build(pool.features.shape[1], LabelSpace.nominal([str(label) for label in range(shares.shape[1])]))
        head.fit(Rows(pool.features[fold.train], shares[fold.train]), Collective())
        with torch.no_grad():
            prediction[fold.test] = head.eval()(pool.features[fold.test]).double().numpy()
    return prediction / prediction.sum(1, keepdims=True)


def score(strategy: Strategy, predictor: VotePredictor, counts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the score of items; those with the largest get a vote."""
    if strategy.score == "expected gain":
        return predictor.gain(counts, rows)
    if strategy.score == "entropy of the model":
        assert predictor.prediction is not None
        return entr(predictor.prediction[rows]).sum(1)
    return entr(predictor.distribution(counts, rows)).sum(1)


def buy(strategy: Strategy, predictor: VotePredictor, pool: Pool, seed: int) -> tuple[np.ndarray, float]:
    """Return the votes (N, C) after the budget is spent, and the expected fall of the mean NLL by the posterior."""
    rng, everything = np.random.default_rng([seed, 1]), np.arange(len(pool.first))
    counts, bought = pool.first.copy(), np.zeros(len(pool.first), int)
    scores = np.zeros(len(counts)) if strategy.score == RANDOM else score(strategy, predictor, counts, everything)
    expected = 0.0
    for _ in range(BUDGET // BATCH):
        open_items = np.flatnonzero(pool.to_buy[everything, bought] >= 0)
        if strategy.score == RANDOM:
            chosen = rng.choice(open_items, BATCH, replace=False)
        else:
            chosen = open_items[np.argsort(-scores[open_items], kind="stable")[:BATCH]]
        expected += predictor.gain(counts, chosen).sum()
        counts[chosen, pool.to_buy[chosen, bought[chosen]]] += 1
        bought[chosen] += 1
        if strategy.score != RANDOM:
            scores[chosen] = score(strategy, predictor, counts, chosen)
    return counts, expected / len(counts)


def measure(arrays: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
    """Return the held-out NLL (N,) of each item at the start and after each strategy, and the expected falls."""
    pool = deal(arrays, seed)
    combiner, prediction = DirichletMixture.fit(pool.first), predict(pool, seed)
    predictors = {
        "votes and model": VotePredictor(combiner, prediction, combiner.model_votes(prediction, pool.first)),
        "votes alone": VotePredictor(combiner, None, 0.0),
    }
    everything = np.arange(len(pool.first))
    result = {
        "model": vote_nll(prediction, pool.held_out),
        "components": np.array(combiner.size),
        "model_votes": np.array(predictors["votes and model"].model_votes),
        "votes": np.array([pool.first.sum(), pool.held_out.sum(), (pool.to_buy >= 0).sum()]),
    }
    for name, predictor in predictors.items():
        result[f"{name}: start"] = vote_nll(predictor.distribution(pool.first, everything), pool.held_out)
    for strategy in STRATEGIES:
        predictor = predictors[strategy.predictor]
        counts, expected = buy(strategy, predictor, pool, seed)
        key = ": ".join(strategy)
        result[key] = vote_nll(predictor.distribution(counts, everything), pool.held_out)
        result[f"{key}: expected"] = np.array(expected)
        result[f"{key}: items"] = np.array((counts != pool.first).any(1).sum())
    return result


def interval(differences: np.ndarray) -> tuple[float, float, float]:
    """Return the mean of differences (seeds, N), and its interval by a bootstrap of items over all seeds together."""
    each, rng = differences.mean(0), np.random.default_rng(0)
    means = [each[rng.integers(len(each), size=len(each))].mean() for _ in range(BOOTSTRAP_SAMPLES)]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(each.mean()), float(low), float(high)


def table(results: dict[str, list[dict[str, np.ndarray]]]) -> str:
    """Return the table of all sets; results are in 1/1000 nats where they are small."""
    header = ["set", "posterior of", "items chosen by", "items", "NLL at the start", "NLL after", "fall x 1000"]
    header += ["expected fall x 1000", "more than random x 1000 (95%)", "more than entropy x 1000 (95%)"]
    lines, about = [], []
    for name, seeds in results.items():
        first, number = seeds[0], len(seeds[0]["model"])
        stack: dict[str, Any] = {key: np.array([seed[key] for seed in seeds]) for key in first}
        about.append(
            f"{name}: {number:,} items, {combiner_in_words(map(int, stack['components']))}, the model alone has a vote "
            f"NLL of {stack['model'].mean():.3f} and counts as {stack['model_votes'].mean():.2f} votes."
        )
        for strategy in STRATEGIES:
            key, start = ": ".join(strategy), stack[f"{strategy.predictor}: start"]
            cells = [name, strategy.predictor, strategy.score, f"{stack[f'{key}: items'].mean():,.0f}"]
            cells += [f"{start.mean():.4f}", f"{stack[key].mean():.4f}", f"{1000 * (start - stack[key]).mean():.2f}"]
            cells.append(f"{1000 * stack[f'{key}: expected'].mean():.2f}")
            for other in (RANDOM, "entropy"):
                if strategy.score in (RANDOM, other):
                    cells.append("")
                    continue
                better = interval(stack[f"{strategy.predictor}: {other}"] - stack[key])
                cells.append("{:.2f} ({:.2f} to {:.2f})".format(*(1000 * end for end in better)))
            lines.append(cells)
    return f"{len(seeds)} seeds. {' '.join(about)}\n\n{markdown(header, lines)}"


def main() -> None:
    parser = make_parser(__doc__, threads=1, block="next_votes")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds (default: %(default)s)")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS), help="sets (default: both)")
    parser.add_argument("--out", type=Path, default=Path("runs/next_votes"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.out.mkdir(parents=True, exist_ok=True)
    results: dict[str, list[dict[str, np.ndarray]]] = {}
    for name in options.sets:
        arrays = load(name, options.out)
        for seed in range(options.seeds):
            file = options.out / f"{name}_{seed}.npz"
            if not file.is_file():
                np.savez(file, **measure(arrays, seed))  # type: ignore[arg-type]
            with np.load(file) as stored:
                results.setdefault(name, []).append(dict(stored))
            print(f"{name}, seed {seed}", flush=True)
    print(text := table(results))
    if options.page:
        write_block(options.page, "next_votes", text)


if __name__ == "__main__":
    launch(main)
