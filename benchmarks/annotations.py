"""Votes of annotators: what every head is worth in raters, and which weight of a row by its votes is best.

``raters`` fits every head of rows on LIDC, by patient, and two heads on frozen features of CIFAR-10H. ``weighting``
compares ``data.weighting`` and ``data.smooth`` on LIDC, a made-up table of films, and FER+, where each training image
keeps 1 to 10 of its votes. ``curves`` compares power curves under one Dirichlet and under a mixture. ``runs`` trains
nothing and writes the results of run directories, or of ``annotations_runs.json`` with the worth of their vote NLL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from benchmarks.common.script import launch, make_parser, write_block
from ldl.annotations import (
    DirichletMixture,
    DirichletMultinomial,
    PowerCurves,
    RaterEquivalence,
    majority_accuracy,
    measure_power,
    most_raters,
    vote_nll,
    worth,
)
from ldl.annotations.equivalence import MOST_RATERS, compare
from ldl.backbones import Timm
from ldl.collective import Collective
from ldl.data import CIFAR10H, LIDC, FERPlus
from ldl.head import FittedHead
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
from ldl.jobs.store import Key, Result, Store
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.protocols import Fold, kfold
from ldl.reports.files import markdown

FOLDS, SEEDS = 10, 3
SIZES = {"one": (1,), "mixture": None}
"""Numbers of components of the combiners that are compared; None chooses."""
STORED = Path(__file__).with_name("annotations_runs.json")
"""Results of runs that take hours."""
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


def lidc(rating: Any = "malignancy") -> Votes:
    data = LIDC(vote_column=rating, folds=FOLDS, val_fraction=0.0)
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


def curves(votes: Votes, raters: int) -> dict[str, tuple[PowerCurves, list[int]]]:
    """Return the power curves of the test items of all folds in turn, and the numbers of components of the folds."""
    found: dict[str, tuple[PowerCurves, list[int]]] = {}
    for name, sizes in SIZES.items():
        parts, components = [], []
        for fold in votes.folds:
            groups = None if votes.groups is None else votes.groups[fold.train]
            choice = {} if sizes is None else {"sizes": sizes}
            combiner = DirichletMixture.fit(votes.counts[fold.train], groups, **choice)
            parts.append(measure_power(votes.counts[fold.test], combiner, raters))
            components.append(combiner.size)
        found[name] = PowerCurves(*(np.concatenate(column) for column in zip(*parts))), components
    return found


def predict(head: FittedHead, votes: Votes, fold: Fold, weighting: str) -> np.ndarray:
    """Fit a head on a fold; return predictions of its test set."""
    counts, prior = votes.counts[fold.train], DirichletMultinomial.fit(votes.counts[fold.train])
    number, weight = counts.sum(1), None
    target = prior.posterior_mean(counts) if "smooth" in weighting else counts / number[:, None]
    if weighting != "equal":
        weight = torch.tensor(number if weighting == "votes" else prior.effective_votes(number))
        weight = weight / weight.mean()
    head.build(votes.features.shape[1], votes.labels)
    group = None if votes.groups is None else torch.from_numpy(votes.groups[fold.train])
    targets = torch.tensor(target, dtype=torch.float32)
    head.fit(Rows(votes.features[fold.train], targets, weight=weight, group=group), Collective())
    with torch.no_grad():
        return np.asarray(head.eval()(votes.features[fold.test]).double().numpy())


def jobs(what: str, seeds: int, sets: list[str]) -> Iterator[tuple[Key, Votes]]:
    """Yield the keys of the jobs and their sets; ``sets`` are those of ``raters``."""
    if what == "raters":
        raters = {name: lidc() if name == "LIDC" else cifar10h() for name in sets}
        for seed in range(seeds):
            for name, votes in raters.items():
                for head in heads(0) if name == "LIDC" else ["MeanPredictor", "Softmax", "LDLF"]:
                    yield {"set": name, "head": head, "weighting": "equal", "seed": seed}, votes
        return
    for seed in range(seeds):
        makers = {"LIDC": lidc, "films": lambda: films(seed=seed), "FER+": lambda: ferplus(seed)}  # noqa: B023
        for name, make in makers.items():
            votes = make()
            for head in ("MaxEnt", "Softmax") if name == "FER+" else ("MaxEnt", "Softmax", "StructRF", "BoostedTrees"):
                for weighting in WEIGHTINGS:
                    yield {"set": name, "head": head, "weighting": weighting, "seed": seed}, votes


def measure(key: Key, votes: Votes, shared_curves: dict[str, Any]) -> Result:
    """Return the results of a job over all folds together, and the NLL of each fold.

    ``shared_curves`` keeps the curves of each set, which all its heads share.
    """
    predicted = np.concatenate(
        [predict(heads(key["seed"])[key["head"]], votes, f, key["weighting"]) for f in votes.folds]
    )
    rows = np.concatenate([fold.test for fold in votes.folds])
    voted, ends = votes.counts[rows], np.cumsum([len(fold.test) for fold in votes.folds])[:-1]
    nll = vote_nll(predicted, voted)
    by_fold = [float(losses.mean()) for losses in np.split(nll, ends)]
    result: Result = {"nll": float(nll.mean()), "folds": by_fold}
    result["accuracy"] = float(majority_accuracy(predicted, voted))
    if key["weighting"] == "equal" and key["set"] != "films":
        most = most_raters(voted)
        if key["set"] not in shared_curves:
            shared_curves[key["set"]] = curves(votes, most)
        kept = np.flatnonzero(voted.sum(1) > most)
        unit = None if votes.groups is None else votes.groups[rows][kept]
        for name, (powers, components) in shared_curves[key["set"]].items():
            result[name] = in_numbers(compare(nll[kept], powers.select(kept, most), groups=unit), components)
    return result


def in_numbers(found: RaterEquivalence, components: list[int]) -> dict[str, Any]:
    """Return a worth with its interval, at most K, as numbers for a file."""
    ends = zip(("worth", "low", "high"), (found.worth, *found.interval))
    numbers = {name: min(end, found.raters) for name, end in ends}
    return {**numbers, "most": found.raters, "items": found.items, "nll": found.nll, "components": components}


def table_of_raters(rows: list[dict[str, Any]]) -> str:
    lines = []
    for of, name in dict.fromkeys((row["set"], row["head"]) for row in rows):
        own = [row for row in rows if (row["set"], row["head"]) == (of, name)]
        nll, folds = np.array([row["nll"] for row in own]), np.mean([row["folds"] for row in own], 0)
        kept = np.mean([row["mixture"]["nll"] for row in own])
        lines.append(
            [of, name, str(len(own)), f"{nll.mean():.4f} ± {folds.std(ddof=1):.4f}"]
            + [f"{nll.std(ddof=1):.4f}" if len(own) > 1 else "", f"{np.mean([row['accuracy'] for row in own]):.3f}"]
            + [f"{kept:.3f}", mean_worth([row["mixture"] for row in own]), mean_worth([row["one"] for row in own])]
        )
    lines.sort(key=lambda line: (line[0] != "LIDC", float(line[3].split()[0])))
    header = ["set", "head", "seeds", "vote NLL ± sd over folds", "sd over seeds", "majority accuracy"]
    header += ["vote NLL of compared items", "worth in raters (95%)", "by one Dirichlet"]
    about = []
    for of in dict.fromkeys(row["set"] for row in rows):
        compared = next(row["mixture"] for row in rows if row["set"] == of)
        combiner = in_words(compared["components"])
        about.append(f"{compared['items']:,} items of {of} with more than {compared['most']} votes, {combiner}.")
    sets = "LIDC: malignancy, five ordinal labels, folds of whole patients. "
    if any(row["set"] == "CIFAR-10H" for row in rows):
        sets += "CIFAR-10H: ten nominal labels, frozen mobilenetv2_100, random folds. "
    return f"{FOLDS} folds. {sets}Compared are {' '.join(about)}\n\n{markdown(header, lines)}"


def mean_worth(found: list[dict[str, Any]]) -> str:
    """Return the mean of worths and intervals over seeds as text."""
    shown = []
    for key in ("worth", "low", "high"):
        mean = np.mean([each[key] for each in found])
        shown.append(f"more than {found[0]['most']}" if mean >= found[0]["most"] else f"{mean:.2f}")
    return f"{shown[0]} ({shown[1]} to {shown[2]})"


def in_words(components: list[int]) -> str:
    low, high = min(components), max(components)
    return f"mixtures of {low}" + (f" to {high}" if high > low else "") + " Dirichlets"


class Curve(NamedTuple):
    """A set in the table of curves: name, labels, function that returns it, the numbers of votes k, least votes."""

    name: str
    labels: str
    make: Callable[[], Votes]
    raters: tuple[int, ...]
    least: int


@cache
def votes_of(name: str) -> Votes:
    """Return the votes of FER+ or CIFAR-10H without features, with the folds of the data module."""
    data = FERPlus(split_copies=True) if name == "FERPlus" else CIFAR10H(crop_size=8, folds=FOLDS, val_fraction=0.0)
    data.setup()
    folds = []
    for fold in range(data.num_folds or 1):
        if data.num_folds:
            data.select_fold(fold)
        folds.append(data.split)
    return Votes(torch.empty(data.size, 0), data.counts(np.arange(data.size)), data.labels, folds)


CURVES = (
    Curve("LIDC malignancy", "5 ordinal", lidc, (0, 1, 2, 3), 4),
    Curve("LIDC malignancy", "5 ordinal", lidc, (0, 1, 2), 3),
    Curve("LIDC texture", "5 ordinal", lambda: lidc("texture"), (0, 1, 2, 3), 4),
    Curve("FER+", "8 nominal", lambda: votes_of("FERPlus"), (0, 1, 2, 3, 5, 7), 8),
    Curve("CIFAR-10H", "10 nominal", lambda: votes_of("CIFAR10H"), (0, 1, 2, 3, 5, 10, 30), 31),
)


def table_of_curves() -> str:
    lines = []
    for name, labels, make, raters, least in CURVES:
        votes = make()
        rows = np.concatenate([fold.test for fold in votes.folds])
        kept = np.flatnonzero(votes.counts[rows].sum(1) >= least)
        for combiner, (powers, components) in curves(votes, max(raters)).items():
            chosen = powers.select(kept, max(raters))
            mean, error = chosen.mean()[list(raters)], chosen.error().max()
            who = "one Dirichlet" if combiner == "one" else in_words(components)
            numbers = " ".join(f"{number:.3f}" for number in mean)
            lines.append(
                [name, labels, f"{len(kept):,}", who, " ".join(map(str, raters)), numbers]
                + [f"{error:.4f}" if error > 0 else "exact"]
            )
    header = [
        "set",
        "labels",
        "items",
        "combiner",
        "votes k",
        "expected NLL of a vote (nats)",
        "largest error of draws",
    ]
    return markdown(header, lines)


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
    """Return the results of runs whose data have votes, from their ``results.json`` or the stored results."""
    lines = []
    stored = json.loads(STORED.read_text(encoding="utf-8")) if not folders else []
    for results in [
        *stored,
        *(json.loads((folder / "results.json").read_text(encoding="utf-8")) for folder in folders),
    ]:
        metrics, around = results["mean"], results["std"]
        folds = results["folds"] if isinstance(results["folds"], int) else len(results["folds"])
        numbers = [
            ("" if metrics[name] is None else f"{metrics[name]:.3f}")
            + (f" ± {around[name]:.3f}" if folds > 1 and around[name] is not None else "")
            for name in ("majority_accuracy", "vote_nll", "kl")
        ]
        names = [results["data"], results["head"], str(results["seed"]), str(folds)]
        if folders:
            raters = results["raters"]
            low, number, high = (
                f"more than {raters['most']}" if raters[key] is None else f"{raters[key]:.2f}"
                for key in ("low", "worth", "high")
            )
            lines.append([*names, *numbers, f"{number} ({low} to {high})"])
        else:
            lines.append([*names, *numbers, *worth_of_nll(results["data"], metrics["vote_nll"])])
    header = ["set", "head", "seed", "folds", "majority accuracy", "vote NLL", "KL"]
    return markdown(
        [*header, *(["worth in raters (95% interval)"] if folders else ["worth in raters", "by one Dirichlet"])], lines
    )


def worth_of_nll(name: str, nll: float) -> list[str]:
    """Return the worth of a vote NLL over all test items, by a mixture and by one Dirichlet.

    The curve is over all test items, so K is the largest number of votes that each of them has beside another one.
    """
    found = [(worth(power, nll), len(power) - 1) for power in stored_curves(name)]
    return [f"{number:.2f}" if number <= most else f"more than {most}" for number, most in found]


@cache
def stored_curves(name: str) -> tuple[np.ndarray, np.ndarray]:
    votes = votes_of(name)
    rows = np.concatenate([fold.test for fold in votes.folds])
    most = min(int(votes.counts[rows].sum(1).min()) - 1, MOST_RATERS)
    found = curves(votes, most)
    print(f"{name}: {len(rows):,} test items, K = {most}, {in_words(found['mixture'][1])}")
    return found["mixture"][0].mean(), found["one"][0].mean()


def main() -> None:
    parser = make_parser(__doc__, threads=1, block="raters, weighting, curves or runs")
    parser.add_argument("what", choices=("raters", "weighting", "curves", "runs"))
    parser.add_argument("folders", type=Path, nargs="*", help="run directories, for runs")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds (default: %(default)s)")
    sets = ["LIDC", "CIFAR-10H"]
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets, help="sets of raters (default: both)")
    parser.add_argument("--out", type=Path, default=Path("runs/annotations"), help="(default: %(default)s)")
    parser.add_argument("--report", action="store_true", help="measure nothing; write the table from stored results")
    options = parser.parse_args()
    if options.what in ("runs", "curves"):
        print(text := table_of_runs(options.folders) if options.what == "runs" else table_of_curves())
        if options.page:
            write_block(options.page, options.what, text)
        return
    torch.set_num_threads(options.threads)
    store = Store(options.out / options.what)
    shared_curves: dict[str, Any] = {}
    if not options.report:
        for key, votes in jobs(options.what, options.seeds, options.sets):
            print(store.get(key, partial(measure, key, votes, shared_curves)), flush=True)
    text = {"raters": table_of_raters, "weighting": table_of_weighting}[options.what](store.rows)
    print(text)
    if options.page:
        write_block(options.page, options.what, text)


if __name__ == "__main__":
    launch(main)
