"""Votes of annotators: what every head is worth in raters, and which weight of a row by its votes is best.

``raters`` fits every head of rows on LIDC, by patient, and two heads on frozen features of CIFAR-10H. ``weighting``
compares ``data.weighting`` and ``data.smooth`` on LIDC, a made-up table of films, and FER+, where each training image
keeps 1 to 10 of its votes. ``runs`` measures nothing and writes the results of run directories.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from benchmarks.common.script import launch, make_parser, write_block
from ldl.annotations import DirichletMultinomial, majority_accuracy, rater_equivalence, vote_nll
from ldl.backbones import Timm
from ldl.collective import Collective
from ldl.data import CIFAR10H, LIDC, FERPlus
from ldl.head import FittedHead, wanted_of
from ldl.heads import (
    AAKNN,
    DSNA,
    LDLF,
    MSLP,
    BoostedTrees,
    CostSensitiveForest,
    MaxEnt,
    MeanPredictor,
    Pool,
    Softmax,
    StructRF,
    Trained,
)
from ldl.labels import LabelSpace
from ldl.protocols import Fold, kfold
from ldl.reports.files import markdown

FOLDS, SEEDS = 10, 3
WEIGHTINGS = ("equal", "votes", "dirichlet", "dirichlet, smooth")


class Votes(NamedTuple):
    """A set: standardised features (N, F), votes (N, C), labels, folds, and groups (N,) of the bootstrap."""

    features: torch.Tensor
    counts: np.ndarray
    labels: LabelSpace
    folds: list[Fold]
    groups: np.ndarray | None = None


def heads(seed: int) -> dict[str, FittedHead]:
    """Return the heads of rows; those that learn by gradient are trained on the same rows."""
    learned: dict[str, Any] = {"epochs": 60, "lr": 3e-3, "seed": seed}
    return {
        "MeanPredictor": MeanPredictor(),
        "AAKNN": AAKNN(neighbours=50),
        "MaxEnt": MaxEnt(),
        "Softmax": Trained(Softmax(hidden=[64], dropout=0.3), **learned),
        "LDLF": Trained(LDLF(trees=10, depth=5, outputs=None, hidden=[64], dropout=0.3, batches=10), **learned),
        "StructRF": StructRF(trees=200, depth=20, min_leaf=20, search="random", seed=seed, threads=1, out_of_bag=False),
        "BoostedTrees": BoostedTrees(seed=seed, threads=1),
        "CostSensitiveForest": CostSensitiveForest(trees=50, depth=8, seed=seed),
        "DSNA": DSNA(trees=20, depth=8, seed=seed),
        "MSLP": MSLP(neighbours=50),
        "Pool": Pool([BoostedTrees(seed=seed, threads=1, rounds=500), MaxEnt(), AAKNN(neighbours=50)], seed=seed),
    }


def standardised(features: np.ndarray) -> torch.Tensor:
    return torch.tensor((features - features.mean(0)) / features.std(0).clip(1e-9), dtype=torch.float32)


def lidc() -> Votes:
    data = LIDC(folds=FOLDS, val_fraction=0.0)
    data.setup()
    folds = []
    for fold in range(FOLDS):
        data.select_fold(fold)
        folds.append(data.split)
    features = np.asarray(data.features, np.float64)
    skewed = np.sign(features) * np.log1p(np.abs(features))
    return Votes(standardised(skewed), data.counts(np.arange(data.size)), data.labels, folds, data.groups)


def films(rows: int = 2000, seed: int = 0) -> Votes:
    """Make a table in which films of equal features differ (concentration 30) and have 5 to 100,000 votes."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, 8))
    mean = 5.5 + 1.2 * features[:, 0] + np.abs(features[:, 1]) - 0.8 * (features[:, 2] > 0.5)
    chance = np.exp(-(((np.arange(1, 11) - mean[:, None]) / 2) ** 2)) + 0.02
    each = np.array([rng.dirichlet(30 * p / p.sum()) for p in chance])
    votes = np.round(10 ** rng.uniform(0.7, 5, rows)).astype(int)
    counts = np.array([rng.multinomial(n, p) for n, p in zip(votes, each)], np.float64)
    folds = [kfold(rows, 5, fold) for fold in range(5)]
    return Votes(torch.tensor(features, dtype=torch.float32), counts, LabelSpace.ordinal(list(range(1, 11))), folds)


def frozen(data: FERPlus | CIFAR10H) -> np.ndarray:
    """Return features (N, F) of a frozen mobilenetv2_100."""
    data.setup()
    backbone = Timm("mobilenetv2_100", pretrained="auto").eval()
    backbone.build(data.input_shape, True)
    numbers = np.arange(data.size)
    with torch.no_grad():
        parts = [backbone(data.inputs(part, part, train=False)) for part in np.array_split(numbers, data.size // 100)]
    return torch.cat(parts).double().numpy()


def cifar10h() -> Votes:
    data = CIFAR10H(crop_size=96, folds=FOLDS, val_fraction=0.0)
    features, folds = standardised(frozen(data)), []
    for fold in range(FOLDS):
        data.select_fold(fold)
        folds.append(data.split)
    return Votes(features, data.counts(np.arange(data.size)), data.labels, folds)


def ferplus(seed: int) -> Votes:
    """Return frozen features for FER+; each training image keeps 1 to 10 of its votes at random."""
    data = FERPlus(split_copies=True)
    features = frozen(data)
    counts, rng = data.counts(np.arange(data.size)), np.random.default_rng(seed)
    for row in data.split.train:
        cast = np.repeat(np.arange(counts.shape[1]), counts[row].astype(int))
        kept = rng.choice(cast, min(len(cast), int(rng.integers(1, 11))), replace=False)
        counts[row] = np.bincount(kept, minlength=counts.shape[1])
    return Votes(standardised(features), counts, data.labels, [data.split])


def predict(head: FittedHead, votes: Votes, fold: Fold, weighting: str) -> tuple[np.ndarray, DirichletMultinomial]:
    """Fit a head on a fold; return predictions of its test set, and the prior of its training set."""
    counts, prior = votes.counts[fold.train], DirichletMultinomial.fit(votes.counts[fold.train])
    number, weight = counts.sum(1), None
    target = prior.posterior_mean(counts) if "smooth" in weighting else counts / number[:, None]
    if weighting != "equal":
        weight = torch.tensor(number if weighting == "votes" else prior.effective_votes(number))
        weight = weight / weight.mean()
    head.build(votes.features.shape[1], votes.labels)
    group = None if votes.groups is None else torch.from_numpy(votes.groups[fold.train])
    columns = {"value": None, "group": group, "weight": weight}
    targets = torch.tensor(target, dtype=torch.float32)
    head.fit(votes.features[fold.train], targets, Collective(), **wanted_of(head, columns))
    with torch.no_grad():
        return head.eval()(votes.features[fold.test]).double().numpy(), prior


def jobs(what: str) -> Iterator[tuple[dict[str, Any], Votes]]:
    """Yield the jobs and their sets."""
    if what == "raters":
        sets = {"LIDC": (lidc(), list(heads(0))), "CIFAR-10H": (cifar10h(), ["MeanPredictor", "Softmax", "LDLF"])}
        for seed in range(SEEDS):
            for name, (found, names) in sets.items():
                for head in names:
                    yield {"set": name, "head": head, "weighting": "equal", "seed": seed}, found
        return
    for seed in range(SEEDS):
        makers = {"LIDC": lidc, "films": lambda: films(seed=seed), "FER+": lambda: ferplus(seed)}  # noqa: B023
        for name, make in makers.items():
            found = make()
            for head in ("MaxEnt", "Softmax") if name == "FER+" else ("MaxEnt", "Softmax", "StructRF", "BoostedTrees"):
                for weighting in WEIGHTINGS:
                    yield {"set": name, "head": head, "weighting": weighting, "seed": seed}, found


def measure(job: dict[str, Any], votes: Votes) -> dict[str, Any]:
    """Return the results of a job over all folds together, and the standard deviation of the NLL over folds."""
    predictions, counts, alphas, groups, each = [], [], [], [], []
    for fold in votes.folds:
        predicted, prior = predict(heads(job["seed"])[job["head"]], votes, fold, job["weighting"])
        predictions.append(predicted)
        counts.append(votes.counts[fold.test])
        alphas.append(np.tile(prior.alpha, (len(predicted), 1)))
        groups.append(np.arange(len(predicted)) if votes.groups is None else votes.groups[fold.test])
        each.append(vote_nll(predicted, counts[-1]).mean())
    predicted, voted, alpha = (np.concatenate(part) for part in (predictions, counts, alphas))
    found = {"nll": float(vote_nll(predicted, voted).mean()), "folds": [float(number) for number in each]}
    found["accuracy"] = float(majority_accuracy(predicted, voted))
    if job["set"] != "films":
        unit = None if votes.groups is None else np.concatenate(groups)
        # On LIDC, the nodules with four readings.
        most = 3 if job["set"] == "LIDC" else None
        raters = rater_equivalence(predicted, voted, DirichletMultinomial(alpha), raters=most, groups=unit)
        most = len(raters.curve) - 1
        found |= {"worth": min(raters.worth, most), "low": min(raters.interval[0], most), "most": most}
        found["high"] = min(raters.interval[1], most)
    return found


def table_of_raters(rows: list[dict[str, Any]]) -> str:
    lines = []
    for of, name in dict.fromkeys((row["set"], row["head"]) for row in rows):
        own = [row for row in rows if (row["set"], row["head"]) == (of, name)]
        nll, folds = np.array([row["nll"] for row in own]), np.mean([row["folds"] for row in own], 0)
        worth, low, high = (np.mean([row[key] for row in own]) for key in ("worth", "low", "high"))
        limit = own[0]["most"]
        shown = [f"more than {limit}" if number >= limit else f"{number:.2f}" for number in (worth, low, high)]
        accuracy = np.mean([row["accuracy"] for row in own])
        lines.append(
            [of, name, f"{nll.mean():.4f} ± {folds.std(ddof=1):.4f}", f"{nll.std(ddof=1) if len(own) > 1 else 0:.4f}"]
            + [f"{accuracy:.3f}", f"{shown[0]} ({shown[1]} to {shown[2]})"]
        )
    lines.sort(key=lambda line: (line[0] != "LIDC", float(line[2].split()[0])))
    header = ["set", "head", "vote NLL ± sd over folds", "sd over seeds", "majority accuracy", "worth in raters (95%)"]
    done = len({row["seed"] for row in rows})
    sets = "LIDC: malignancy from 1 to 5, folds of whole patients. CIFAR-10H: frozen mobilenetv2_100, random folds."
    return f"{FOLDS} folds, up to {done} seeds. {sets}\n\n{markdown(header, lines)}"


def table_of_weighting(rows: list[dict[str, Any]]) -> str:
    lines = []
    for key in dict.fromkeys((row["set"], row["head"]) for row in rows):
        own = [row for row in rows if (row["set"], row["head"]) == key]
        means = {w: np.mean([row["nll"] for row in own if row["weighting"] == w] or [np.nan]) for w in WEIGHTINGS}
        best = min(means.values())
        lines.append([*key, *(f"**{mean:.4f}**" if mean == best else f"{mean:.4f}" for mean in means.values())])
    seeds = len({row["seed"] for row in rows})
    table = markdown(["set", "head", *WEIGHTINGS], lines)
    return f"Vote NLL per item, mean of {seeds} seeds. Bold: the lowest of a row.\n\n{table}"


def table_of_runs(folders: list[Path]) -> str:
    """Return the results of runs whose data have votes, from their ``results.json``."""
    lines = []
    for folder in folders:
        results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
        metrics, raters = results["mean"], results["raters"]
        low, worth, high = (
            f"more than {raters['most']}" if raters[key] is None else f"{raters[key]:.2f}"
            for key in ("low", "worth", "high")
        )
        folds, around = len(results["folds"]), results["std"]
        numbers = [
            f"{metrics[name]:.3f}" + (f" ± {around[name]:.3f}" if folds > 1 else "")
            for name in ("majority_accuracy", "vote_nll", "kl")
        ]
        names = [results["data"], results["head"], str(results["seed"]), str(folds)]
        lines.append([*names, *numbers, f"{worth} ({low} to {high})"])
    header = ["set", "head", "seed", "folds", "majority accuracy", "vote NLL", "KL", "worth in raters (95% interval)"]
    return markdown(header, lines)


def main() -> None:
    parser = make_parser(__doc__, threads=1, block="raters, weighting or runs")
    parser.add_argument("what", choices=("raters", "weighting", "runs"))
    parser.add_argument("folders", type=Path, nargs="*", help="run directories, for runs")
    parser.add_argument("--out", type=Path, default=Path("runs/annotations"), help="(default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="measure nothing; write the table from stored results")
    given = parser.parse_args()
    if given.what == "runs":
        print(text := table_of_runs(given.folders))
        if given.page:
            write_block(given.page, "runs", text)
        return
    torch.set_num_threads(given.threads)
    given.out.mkdir(parents=True, exist_ok=True)
    store = given.out / f"{given.what}.jsonl"
    rows = [json.loads(line) for line in store.read_text(encoding="utf-8").splitlines()] if store.exists() else []
    keys = ("set", "head", "weighting", "seed")
    if not given.report:
        for job, votes in jobs(given.what):
            if any(all(row[key] == job[key] for key in keys) for row in rows):
                continue
            rows.append({**job, **measure(job, votes)})
            with store.open("a", encoding="utf-8") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            print(rows[-1], flush=True)
    text = {"raters": table_of_raters, "weighting": table_of_weighting}[given.what](rows)
    print(text)
    if given.page:
        write_block(given.page, given.what, text)


if __name__ == "__main__":
    launch(main)
