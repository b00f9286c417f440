"""Majority vote, Dawid-Skene and shares of votes as targets of the same head, on sets that people labelled.

``measure`` fits the head on every fold with three seeds and stores the results of each set, target and seed. Within the
training set of a fold, the vote NLL of held-out items chooses how long the head is trained, for each target alone.
``agreement`` fits nothing, and ``report`` writes the tables. LIDC comes with ldl. The other sets lie below
``LDL_DATA``. Text becomes the mean of the token vectors of the package ``wordllama``, which must be installed with
``tokenizers``. Features and votes of text, and features of images, are written below ``--out``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr

from benchmarks.annotations import frozen
from benchmarks.common.rater_sets import read_md_agreement, read_popquorn
from benchmarks.common.script import launch, make_parser, write_block
from ldl.annotations import (
    DirichletMixture,
    PowerCurves,
    krippendorff_alpha,
    majority_accuracy,
    measure_power,
    most_raters,
    power_curve,
    vote_nll,
)
from ldl.annotations.equivalence import compare
from ldl.collective import Collective
from ldl.data import CIFAR10H, FERPlus, TabularLDL
from ldl.data.text.wordllama import WordLlama
from ldl.edges.benchmark.votes import Tally, calibration_error
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.heads import Softmax, StructRF, Trained
from ldl.jobs.store import Key, Result, Store
from ldl.methods.rows import Rows
from ldl.reports.files import markdown
from ldl.search.selection import Candidate, Selection, Setting, choose_and_test
from ldl.search.statistics import difference_interval
from ldl.validation.files import find_path

FOLDS, SEEDS = 5, 3
CLEAR = 0.95
"""Share of the votes for one label from which an item is clear."""
TARGETS = {"shares": "shares", "majority": "majority vote", "dawid_skene": "Dawid-Skene"}
STORED = Path(__file__).with_name("annotators_results.json")
"""Results behind the tables of the page."""
CHOICE = Selection(metrics=("vote_nll",), inner_folds=1, val_fraction=0.2)
"""How the setting of a head is chosen, within the training set of each fold."""
Data = TabularLDL | CIFAR10H | FERPlus


class Study(NamedTuple):
    """A set and the head that learns it.

    Attributes:
        make: Returns the data, for the folder of prepared files and options such as ``target``.
        scaling: Scaling of the features of the softmax.
        raters: Whether the rater of each vote is known.
        forest: Fit a structured forest and not a softmax.
        steps: Numbers of steps of training to choose from; the head is trained for one epoch at least.
    """

    make: Callable[..., Data]
    scaling: Any = "standard"
    raters: bool = False
    forest: bool = False
    steps: tuple[int, ...] = (100, 300, 1000)

    @property
    def targets(self) -> list[str]:
        """The targets that the votes allow."""
        return [target for target in TARGETS if self.raters or target != "dawid_skene"]

    @property
    def settings(self) -> list[Setting]:
        """The settings of the head to choose from."""
        return [{"min_leaf": n} for n in (50, 20, 5)] if self.forest else [{"steps": n} for n in self.steps]

    def head(self, seed: int, setting: Setting) -> FittedHead:
        """Return a head in one setting. Its other hyperparameters are the same for all sets."""
        if self.forest:
            return StructRF(trees=200, depth=20, search="random", seed=seed, threads=1, out_of_bag=False, **setting)
        softmax = Softmax(hidden=[64], dropout=0.3)
        return Trained(softmax, epochs=200, lr=3e-3, scaling=self.scaling, seed=seed, **setting)


class Target(Candidate):
    """The head of a study on one target, with one seed.

    Attributes:
        data: The data module, set up.
        predictions: (n, C) for the test set of each fold that was tested.
    """

    def __init__(self, study: Study, folder: Path, target: str, seed: int) -> None:
        self.study, self.seed, self.name, self.settings = study, seed, target, study.settings
        self.data = study.make(folder, target=target)
        self.data.setup()
        self.features = features_of(self.data, folder)
        self.predictions: dict[int, np.ndarray] = {}

    def open(self, setting: Setting, fold: int) -> Data:
        """Return the data with a fold selected."""
        if self.data.num_folds > 1:
            self.data.select_fold(fold)
        return self.data

    def score(self, setting: Setting, data: Any, choosing: bool = False) -> dict[str, float]:
        """Fit the head on the training set, and return the vote NLL of the test set."""
        head, rows = self.study.head(self.seed, setting), data.split.train
        head.build(self.features.shape[1], data.labels)
        group = None if data.groups is None else torch.from_numpy(np.unique(data.groups[rows], return_inverse=True)[1])
        head.fit(Rows(self.features[rows], data.columns["target"][rows].float(), group=group), Collective())
        with torch.no_grad():
            prediction = head.eval()(self.features[data.split.test]).double().numpy()
        if not choosing:
            self.predictions[data.fold] = prediction
        return {"vote_nll": float(vote_nll(prediction, data.counts(data.split.test)).mean())}


def features_of(data: Data, folder: Path) -> torch.Tensor:
    """Return the features (N, F) of a table, or those of a frozen network from images."""
    if isinstance(data, TabularLDL):
        return torch.tensor(np.asarray(data.features), dtype=torch.float32)
    file = folder / f"{type(data).__name__}.npy"
    if not file.is_file():
        np.save(file, frozen(data).astype(np.float32))
    return torch.from_numpy(np.load(file))


def nodules(folder: Path, nodules: int | None = None, **options: Any) -> TabularLDL:
    """Return the example of ldl, or that many nodules of its first patients."""
    path = "nodules.csv"
    if nodules is not None:
        table = pd.read_csv(find_path(path))
        path = str(folder / f"nodules_{nodules}.csv")
        table.head(nodules).to_csv(path, index=False)
        options |= {"unknown_items": "drop"}
    table_options: dict[str, Any] = {"scaling": "none", "label_type": "ordinal", "label_order": list("12345")}
    return TabularLDL(path=path, votes="readings.csv", folds=FOLDS, val_fraction=0.0, **table_options, **options)


def texts(folder: Path, name: str, read: Callable[[], pd.DataFrame], ordinal: bool, **options: Any) -> TabularLDL:
    """Return text with votes: ``read`` returns a row for each vote, with item, rater, label and text.

    Texts that are equal are one group, so that no text is in training and test.
    """
    features, votes = folder / f"{name}.csv", folder / f"{name}_votes.csv"
    if not features.is_file():
        table = read()
        items = table.drop_duplicates("item")
        columns = pd.DataFrame(token_vectors(items["text"]), items["item"]).add_prefix("v").round(5)
        columns.insert(0, "group", pd.factorize(items["text"])[0])
        table[["item", "rater", "label"]].to_csv(votes, index=False)
        columns.to_csv(features)
    kind: Any = "ordinal" if ordinal else "nominal"
    return TabularLDL(
        path=str(features), votes=str(votes), folds=FOLDS, val_fraction=0.0, scaling="none", label_type=kind, **options
    )


def token_vectors(texts: Iterable[str]) -> np.ndarray:
    """Return the mean token vector of each text, scaled to length 1, (n, 256). Raises LDLError without the package."""
    encoder = WordLlama()
    encoded = encoder.tokenizer.encode_batch(list(texts), add_special_tokens=False)
    means = np.stack([encoder.vectors[each.ids].astype(np.float64).mean(0) for each in encoded])
    return means / np.linalg.norm(means, axis=1, keepdims=True)


def images(kind: type[CIFAR10H] | type[FERPlus], folder: Path, **options: Any) -> CIFAR10H | FERPlus:
    """Return images of 96 x 96 pixels, from which a frozen mobilenetv2_100 computes features."""
    if kind is CIFAR10H:
        options |= {"folds": FOLDS, "val_fraction": 0.0}
    return kind(crop_size=96, batch_size=256, **options)


STUDIES = {
    "LIDC": Study(nodules, "quantile_normal"),
    "POPQUORN": Study(
        partial(texts, name="popquorn", read=read_popquorn, ordinal=True), raters=True, steps=(10, 30, 100, 300, 1000)
    ),
    "MD-Agreement": Study(partial(texts, name="md_agreement", read=read_md_agreement, ordinal=False), raters=True),
    "CIFAR-10H": Study(partial(images, CIFAR10H)),
    "FER+": Study(partial(images, FERPlus)),
    "LIDC, forest": Study(nodules, forest=True),
    "LIDC, 200 nodules": Study(partial(nodules, nodules=200), "quantile_normal"),
}
"""The sets, and variants of one of them for the section on limits."""
MAIN = ["LIDC", "POPQUORN", "MD-Agreement", "CIFAR-10H", "FER+"]


def entropy(shares: np.ndarray) -> np.ndarray:
    """Return the entropy of distributions (n, C) in nats."""
    return np.asarray(-(shares * np.log(np.maximum(shares, 1e-12))).sum(1))


def vote_calibration(prediction: np.ndarray, counts: np.ndarray) -> float:
    """Return the expected calibration error of the probabilities of all labels as chances of a vote, from 0 to 1.

    It is that of ``ldl.edges``: 15 bins with as many pairs of item and label, each pair with the share of its votes.
    """
    shares = counts / counts.sum(1, keepdims=True)
    return calibration_error(Tally(np.ones(shares.size), shares.ravel()), prediction.ravel(), mass=True)


def measure(name: str, folder: Path, key: Key) -> Result:
    """Return the results of one target and seed: lists over the folds, and the worth over all test items."""
    target = Target(STUDIES[name], folder, key["target"], key["seed"])
    data, columns = target.data, ("nll", "accuracy", "calibration", "rank", "clear", "unclear")
    lists: dict[str, list[Any]] = {column: [] for column in (*columns, "settings")}
    losses = []
    for fold in range(data.num_folds):
        outcome = choose_and_test(target, fold, CHOICE)
        if "error" in outcome:
            raise LDLError(f"{name}, {key['target']}, fold {fold}: {outcome['error']}")
        counts, prediction = data.counts(data.split.test), target.predictions[data.fold]
        shares, nll = counts / counts.sum(1, keepdims=True), vote_nll(prediction, counts)
        clear = shares.max(1) >= CLEAR
        losses.append(nll)
        lists["settings"].append(outcome["setting"])
        lists["nll"].append(float(nll.mean()))
        lists["accuracy"].append(majority_accuracy(prediction, counts))
        lists["calibration"].append(vote_calibration(prediction, counts))
        lists["rank"].append(float(spearmanr(entropy(prediction), entropy(shares)).statistic))
        lists["clear"].append(float(nll[clear].mean()))
        lists["unclear"].append(float(nll[~clear].mean()))
    powers, kept, groups = curves(name, folder)
    raters = compare(np.concatenate(losses)[kept], powers, groups=groups)
    ends = {"worth": raters.worth, "low": raters.interval[0], "high": raters.interval[1]}
    ends = {end: min(number, raters.raters) for end, number in ends.items()}
    return {**lists, **ends, "most": raters.raters, "items": raters.items}


@cache
def curves(name: str, folder: Path) -> tuple[PowerCurves, np.ndarray, np.ndarray | None]:
    """Return the power curves of the test items with enough votes, their numbers among all, and their groups."""
    data = STUDIES[name].make(folder)
    data.setup()
    tests, trains = [], []
    for fold in range(data.num_folds):
        if data.num_folds > 1:
            data.select_fold(fold)
        tests.append(data.split.test)
        trains.append(data.split.train)
    rows, groups = np.concatenate(tests), data.groups
    votes = data.counts(rows)
    most = most_raters(votes)
    parts = []
    for train, test in zip(trains, tests):
        combiner = DirichletMixture.fit(data.counts(train), None if groups is None else groups[train])
        parts.append(measure_power(data.counts(test), combiner, most))
    kept = np.flatnonzero(votes.sum(1) > most)
    powers = PowerCurves(*(np.concatenate(column) for column in zip(*parts)))
    return powers.select(kept, most), kept, None if groups is None else groups[rows][kept]


def describe(name: str, folder: Path) -> Result:
    """Return what the votes of a set show without a model."""
    data = STUDIES[name].make(folder)
    data.setup()
    counts = data.counts(np.arange(data.size))
    _, power, items = power_curve(counts, data.groups)
    shares = counts / counts.sum(1, keepdims=True)
    return {
        "items": data.size,
        "votes": int(counts.sum()),
        "median": float(np.median(counts.sum(1))),
        "labels": f"{len(data.labels)} {data.labels.kind}",
        "alpha": krippendorff_alpha(counts, data.labels),
        "clear": float((shares.max(1) >= CLEAR).mean()),
        "power": power.tolist(),
        "compared": items,
    }


def table_of_agreement(rows: Sequence[Result]) -> str:
    lines = []
    for row in sorted(rows, key=lambda row: MAIN.index(row["set"])):
        chosen = sorted({0, 1, 2, len(row["power"]) - 1})
        curve = ", ".join(f"{row['power'][k]:.3f} ({k})" for k in chosen)
        lines.append(
            [row["set"], f"{row['items']:,}", f"{row['votes']:,}", f"{row['median']:g}", row["labels"]]
            + [f"{row['alpha']:.3f}", f"{row['clear']:.0%}", curve]
        )
    header = ["set", "items", "votes", "votes an item", "labels", "Krippendorff's alpha", "items with 95% agreement"]
    return markdown([*header, "NLL of a vote from (k) others"], lines)


def over_seeds(rows: Sequence[Result], name: str, target: str, column: str) -> np.ndarray:
    """Return the means over seeds of a column, (folds,); empty if the target was not measured."""
    lists = [row[column] for row in rows if (row["set"], row["target"]) == (name, target)]
    return np.mean(lists, axis=0) if lists else np.empty(0)


def difference(rows: Sequence[Result], name: str, target: str, column: str, digits: int) -> str:
    """Return the mean difference of a target from shares, with its interval over folds."""
    ours, shares = (over_seeds(rows, name, each, column) for each in (target, "shares"))
    mean = float((ours - shares).mean())
    if len(ours) < 2:
        return f"{mean:+.{digits}f}"
    low, high = difference_interval(ours, shares)
    return f"{mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def worth_of(rows: Sequence[Result]) -> str:
    """Return the mean worth over seeds, with the means of the ends of its intervals."""
    most = rows[0]["most"]
    ends = (np.mean([row[key] for row in rows]) for key in ("worth", "low", "high"))
    worth, low, high = (f"more than {most}" if end >= most else f"{end:.2f}" for end in ends)
    return f"{worth} ({low} to {high})"


def table_of_targets(rows: Sequence[Result]) -> str:
    lines = []
    for name in [name for name in MAIN if any(row["set"] == name for row in rows)]:
        for target in STUDIES[name].targets:
            own = [row for row in rows if (row["set"], row["target"]) == (name, target)]
            if not own:
                continue
            means = {column: over_seeds(rows, name, target, column).mean() for column in ("calibration", "rank")}
            nll, accuracy = (over_seeds(rows, name, target, column).mean() for column in ("nll", "accuracy"))
            against = ["", ""]
            if target != "shares":
                against = [difference(rows, name, target, *column) for column in (("nll", 4), ("accuracy", 3))]
            lines.append(
                [name, TARGETS[target], f"{nll:.4f}", against[0], f"{means['calibration']:.3f}", f"{accuracy:.3f}"]
                + [against[1], worth_of(own), f"{means['rank']:.2f}"]
            )
    header = ["set", "learned from", "vote NLL", "difference (95%)", "calibration error", "majority accuracy"]
    header += ["difference (95%)", "worth in raters (95%)", "rank correlation of entropies"]
    return f"{scope(rows, MAIN)}\n\n{markdown(header, lines)}"


def scope(rows: Sequence[Result], names: Sequence[str]) -> str:
    """Return the seeds and folds behind a table of these sets, in sentences."""
    seeds: dict[int, list[str]] = {}
    for name in names:
        if own := {row["seed"] for row in rows if row["set"] == name}:
            seeds.setdefault(len(own), []).append(f"`{name}`")
    counted = [f"Seeds of {', '.join(members)}: {number}." for number, members in seeds.items()]
    return (
        f"Means over {FOLDS} folds and over seeds. {' '.join(counted)} FER+ has its published split and so no "
        "interval. A difference is that from shares, on the same folds."
    )


def table_of_limits(rows: Sequence[Result]) -> str:
    """Return where shares do not help: clear items, few items, a forest."""
    lines = []
    for name in [name for name in STUDIES if len(over_seeds(rows, name, "majority", "nll"))]:
        nll = [f"{over_seeds(rows, name, target, 'nll').mean():.4f}" for target in ("shares", "majority")]
        columns = (("nll", 4), ("clear", 4), ("unclear", 4), ("accuracy", 3))
        lines.append([name, *nll, *(difference(rows, name, "majority", *column) for column in columns)])
    header = ["set", "shares: vote NLL", "majority: vote NLL", "difference, all items", "items with 95% agreement"]
    header += ["other items", "majority accuracy"]
    return f"{scope(rows, [*STUDIES])}\n\n{markdown(header, lines)}"


TABLES = {
    "annotators_agreement": table_of_agreement,
    "annotators": table_of_targets,
    "annotators_limits": table_of_limits,
}


def main() -> None:
    parser = make_parser(__doc__, threads=1, block="annotators_agreement, annotators and annotators_limits")
    parser.add_argument("what", choices=("agreement", "measure", "report"))
    parser.add_argument("--sets", nargs="+", choices=STUDIES, default=[*STUDIES], help="(default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/annotators"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    stores = {what: Store(options.out / what) for what in ("agreement", "measure")}
    folder = options.out / "data"
    folder.mkdir(parents=True, exist_ok=True)
    if options.what == "agreement":
        for name in (name for name in options.sets if name in MAIN):
            print(stores["agreement"].get({"set": name}, partial(describe, name, folder)), flush=True)
    for seed in range(options.seeds if options.what == "measure" else 0):
        for name in options.sets:
            for target in STUDIES[name].targets:
                key = {"set": name, "target": target, "seed": seed}
                print(stores["measure"].get(key, partial(measure, name, folder, key)), flush=True)
    results = {what: store.rows for what, store in stores.items()}
    if options.what != "report":
        return
    if any(results.values()):
        STORED.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    results = json.loads(STORED.read_text(encoding="utf-8"))
    for block, write in TABLES.items():
        print(text := write(results["agreement" if block.endswith("agreement") else "measure"]).strip())
        if options.page:
            write_block(options.page, block, text)


if __name__ == "__main__":
    launch(main)
