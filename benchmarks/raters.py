"""Models of raters on text with votes: item alone, bias and confusion, beside competing packages on the same vectors.

``measure`` trains ``ldl -c text`` with the default options on every fold with three seeds. It stores the metrics of
each set, model and seed, a description of the raters, and metrics of groups of raters. ``peers`` does the same with
scikit-activeml and crowd-kit, on the vectors and the folds of ``ldl``. Predictions and runs are written below
``--out``. ``report`` writes the tables. The sets lie below ``LDL_DATA/text``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import pandas as pd
import torch
from ldl.raters import measure_groups
from scipy.stats import spearmanr

from benchmarks.common import rater_tables
from benchmarks.common.rater_peers import PEERS, Setting, Votes, population, train_defaults, tune
from benchmarks.common.rater_scores import Predictions, base_rates, gain_by_votes, nll_of, paired_difference, score
from benchmarks.common.rater_sets import SETS, Sample, open_folds, write_files
from benchmarks.common.script import launch, make_parser, write_block
from ldl.annotations.votes import SingleVotes
from ldl.command import main as run_ldl
from ldl.errors import LDLError
from ldl.inference import Predictor
from ldl.jobs.store import Key, Result, Store

SEEDS = 3
STORED = Path(__file__).with_name("raters_results.json")
"""Results behind the tables of the page."""
MODELS = {
    "item": [],
    "features": ["--model.raters", "bias", "--model.rater_shrinkage", "1e6"],
    "bias": ["--model.raters", "bias"],
    "bias, features": ["--model.raters", "bias"],
    "confusion": ["--model.raters", "confusion"],
    "confusion, features": ["--model.raters", "confusion"],
}
"""Options of the models of ldl. Those with ``features`` in their name take the features of raters; ``features`` alone
shrinks the deviation of each rater to 0."""
PEER_MODELS = [*PEERS, *(f"{name}, defaults" for name in PEERS if name != "CoNAL")]
"""The competing packages, tuned and with their defaults; CoNAL has no training loop and so no defaults."""
GROUPED = {"POPQUORN": ("gender", "age")}
"""Features by which raters are grouped."""
REFERENCE = "bias"
"""Model with which the others are compared on a published split."""


def is_measured(name: str, model: str) -> bool:
    """Return whether a set has the features that a model of ldl takes."""
    return bool(SETS[name].features) or "features" not in model


def folder_of(out: Path, name: str, model: str, seed: int) -> Path:
    """Return the run directory of a model."""
    return out / "runs" / f"{name}_{model.replace(', ', '_')}_{seed}"


def train(name: str, model: str, seed: int, out: Path) -> Path:
    """Train a model with ``ldl -c text`` and default options on all folds, and return its run directory."""
    run, files, chosen = folder_of(out, name, model, seed), write_files(name, out / "data"), SETS[name]
    if not (run / "results.json").is_file():
        options = ["-c", "text", "--data.path", str(files.comments), "--data.votes", str(files.votes), *MODELS[model]]
        if "features" in model:
            options += ["--data.rater_features", json.dumps(chosen.features)]
        options += [f"--data.{option}={value}" for option, value in chosen.options.items()]
        options += ["--stage", "fit" if chosen.published else "crossval", "--seed_everything", str(seed)]
        options += ["--run_dir", str(run), "--wandb.mode=disabled", "--trainer.enable_progress_bar=false"]
        try:
            run_ldl(options)
        except SystemExit as stop:
            if stop.code:
                raise LDLError(f"ldl {' '.join(options)} ended with code {stop.code}") from None
    return run


def fold_folder(run: Path, name: str, fold: int) -> Path:
    """Return the folder of a fold in a run directory."""
    return run if SETS[name].published else run / f"fold_{fold}"


def predict_fold(name: str, model: str, run: Path, fold: int, sample: Sample, out: Path) -> Predictions:
    """Return the predictions of a trained model for the test set of a fold, by its checkpoint."""
    test = pd.read_csv(write_files(name, out / "data").comments, dtype=str, keep_default_na=False).iloc[
        sample.split.test
    ]
    predictor = Predictor.from_checkpoint(fold_folder(run, name, fold) / "checkpoints" / "last.ckpt")
    single = sample.votes_on(sample.split.test)
    shared = predictor.predict(test).distribution
    if model == "item":
        return Predictions(shared, shared[single.item])
    raters = [str(name) for name in single.names[single.rater]]
    return Predictions(shared, predictor.predict(test.iloc[single.item], rater=raters).distribution)


def predict_peer(model: str, seed: int, sample: Sample, first: Setting | None) -> tuple[Predictions, Result]:
    """Return the predictions of a competing package for the test set of a fold, and its chosen setting.

    Args:
        model: One of :data:`PEER_MODELS`.
        seed: Seed.
        sample: The fold.
        first: Setting that the first seed has chosen on this fold; None chooses.
    """
    train, val, test = (
        Votes(sample.features[rows], sample.votes_on(rows), len(sample.labels))
        for rows in (sample.split.train, sample.split.val, sample.split.test)
    )
    peer_name, _, defaults = model.partition(", ")
    chosen: Result = {}
    if defaults:
        peer = train_defaults(peer_name, train, seed)
    else:
        peer, nll, setting, epochs = tune(peer_name, train, val, seed, *([[first]] if first else []))
        chosen = {**setting._asdict(), "epochs": epochs, "val_nll": nll}
    shared = population(peer, test.features, np.unique(train.single.rater))
    return Predictions(shared, peer.predict(test.features, test.single.item, test.single.rater)), chosen


class Study:
    """Predictions of all models on the folds of a set, stored below a folder.

    Args:
        name: Name of the set.
        out: The folder.
    """

    def __init__(self, name: str, out: Path) -> None:
        self.name, self.out = name, out
        self.samples = list(open_folds(name, out / "data"))

    def predictions(self, model: str, seed: int) -> list[Predictions]:
        """Return the predictions on the test set of each fold, which are computed if they are not stored."""
        return [self._of_fold(model, seed, fold)[0] for fold in range(len(self.samples))]

    def _of_fold(self, model: str, seed: int, fold: int) -> tuple[Predictions, Result]:
        sample = self.samples[fold]
        if model == "base rates":
            return base_rates(sample.single, sample.split.train, sample.split.test, len(sample.labels)), {}
        file = self.out / "predictions" / f"{self.name}_{model.replace(', ', ' ')}_{seed}_{fold}.npz"
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            if model in MODELS:
                run = train(self.name, model, seed, self.out)
                predicted, chosen = predict_fold(self.name, model, run, fold, sample, self.out), {}
            else:
                setting = self._of_fold(model, 0, fold)[1] if seed else {}
                first = Setting(setting["lr"], setting["factor"]) if setting else None
                predicted, chosen = predict_peer(model, seed, sample, first)
            np.savez(file, **predicted._asdict(), chosen=json.dumps(chosen))
        with np.load(file) as stored:
            return Predictions(stored["population"], stored["votes"]), json.loads(str(stored["chosen"]))

    def scores(self, model: str, seed: int) -> Result:
        """Return the metrics of a model, a list over folds each, and its difference from ``bias`` by items."""
        rows = []
        for sample, predicted in zip(self.samples, self.predictions(model, seed)):
            rows.append(score(predicted, sample.votes_on(sample.split.test), sample.labels))
        return {metric: [row[metric] for row in rows] for metric in rows[0]}

    def pooled(self, model: str, seed: int) -> tuple[Predictions, SingleVotes]:
        """Return the predictions for the test sets of all folds together, and the votes on them."""
        predictions = self.predictions(model, seed)
        votes = self.samples[0].votes_on(np.concatenate([sample.split.test for sample in self.samples]))
        order = np.concatenate(
            [np.flatnonzero(np.isin(self.samples[0].single.item, sample.split.test)) for sample in self.samples]
        )
        every = np.concatenate([predicted.votes for predicted in predictions])
        in_order = np.empty_like(every)
        in_order[np.argsort(np.argsort(order))] = every
        return Predictions(np.concatenate([predicted.population for predicted in predictions]), in_order), votes

    def difference(self, model: str, against: str, seeds: int) -> Result:
        """Return the difference of the NLL of a vote between two models over all test items, means over seeds."""
        losses = []
        for each in (model, against):
            pooled = [self.pooled(each, seed) for seed in range(seeds)]
            losses.append(np.mean([nll_of(predicted.votes, votes.label) for predicted, votes in pooled], axis=0))
            item = pooled[0][1].item
        mean, low, high = paired_difference(*losses, item)
        return {"mean": mean, "low": low, "high": high}

    def gains(self, model: str, seed: int) -> Result:
        """Return by how much a model lowers the NLL of a vote of the item alone, by the training votes of the rater."""
        rows = []
        for sample, ours, item in zip(self.samples, self.predictions(model, seed), self.predictions("item", seed)):
            test, train = sample.votes_on(sample.split.test), sample.votes_on(sample.split.train)
            trained = np.bincount(train.rater, minlength=len(train.names))
            nll = [nll_of(predicted.votes, test.label) for predicted in (ours, item)]
            rows += gain_by_votes(*nll, test.rater, trained)
        return {"bins": rows}

    def groups(self, column: str, seed: int) -> Result:
        """Return how well the population's predictions hold for groups of raters, and the NLL with raters known."""
        predicted, votes = self.pooled("item", seed)
        rated, _ = self.pooled(REFERENCE, seed)
        table = pd.read_csv(write_files(self.name, self.out / "data").votes, dtype=str, keep_default_na=False)
        group = table.drop_duplicates("rater").set_index("rater")[column].loc[list(map(str, votes.names))].to_numpy()
        labels = self.samples[0].labels
        shared = measure_groups(predicted.population.astype(float), votes, group, labels)
        single = votes._replace(item=np.arange(len(votes.item)))
        known = measure_groups(rated.votes.astype(float), single, group, labels)
        shared["known"], shared["known_se"] = known["nll"], known["nll_se"]
        return {"rows": shared.reset_index().to_dict("records")}

    def raters(self, model: str, seed: int) -> Result:
        """Return the table of raters of each fold in short, with how well their bias holds on held-out votes."""
        run = train(self.name, model, seed, self.out)
        rows = []
        for fold, (sample, item) in enumerate(zip(self.samples, self.predictions("item", seed))):
            table = pd.read_csv(fold_folder(run, self.name, fold) / "raters.csv", dtype={"rater": str}).set_index(
                "rater"
            )
            rows.append(describe_raters(table, sample, item.population))
        return {key: [row[key] for row in rows] for key in rows[0]}


def describe_raters(table: pd.DataFrame, sample: Sample, population: np.ndarray) -> dict[str, Any]:
    """Return in numbers what a table of raters says.

    Args:
        table: ``raters.csv`` of a fold, by rater.
        sample: The fold.
        population: (n, C) predictions for the test items by the item alone.

    Returns:
        ``raters``, their number; ``std``, the standard deviation of their bias; ``apart``, the share of intervals of
        the bias without 0; ``width``, the median width of these intervals; ``held_out``, Spearman's correlation of the
        bias with the mean difference of held-out votes from the population's prediction; ``examples``, the raters with
        the least, the median and the largest bias: votes, bias, interval, informativeness and its interval. The bias of
        nominal labels is that of the last label.
    """
    table = table[table["votes"] > 0]
    ordinal = sample.labels.kind == "ordinal"
    end = "" if ordinal else f":{sample.labels.names[-1]}"
    kind = "shift" if ordinal else "bias"
    bias, low, high = (table[f"{column}{end}"] for column in (kind, f"{kind}_lower_90", f"{kind}_upper_90"))
    votes = sample.votes_on(sample.split.test)
    value = np.array(sample.labels.axes[0]) if ordinal else np.eye(len(sample.labels))[-1]
    frame = pd.DataFrame({"rater": np.array(votes.names)[votes.rater].astype(str)})
    frame["gap"] = value[votes.label] - (population @ value)[votes.item]
    gap = frame.groupby("rater")["gap"].mean()
    shared = bias.index.intersection(gap.index)
    order = bias.sort_values().index
    examples = []
    for rater in (order[0], order[len(order) // 2], order[-1]):
        row = table.loc[rater]
        columns = ("informativeness", "informativeness_lower_90", "informativeness_upper_90")
        examples.append(
            [
                int(row["votes"]),
                float(bias[rater]),
                float(low[rater]),
                float(high[rater]),
                *map(float, row[list(columns)]),
            ]
        )
    return {
        "raters": len(table),
        "std": float(bias.std()),
        "apart": float(((low > 0) | (high < 0)).mean()),
        "width": float((high - low).median()),
        "held_out": float(spearmanr(bias[shared], gap[shared]).statistic),
        "examples": examples,
    }


@cache
def open_study(name: str, out: Path) -> Study:
    """Return the study of a set, read once."""
    return Study(name, out)


def compute(name: str, out: Path, what: str, *arguments: Any) -> Result:
    """Return a result of a set: what the method ``what`` of its study returns."""
    result: Result = getattr(open_study(name, out), what)(*arguments)
    return result


def jobs_of(name: str, out: Path, seeds: int, peers: bool) -> Iterator[tuple[Key, Callable[[], Result]]]:
    """Yield the keys of the results of a set, and the functions that compute them."""

    def job(what: str, *arguments: Any, **key: Any) -> tuple[Key, Callable[[], Result]]:
        return {"what": what, "set": name, **key}, partial(compute, name, out, what, *arguments)

    models = PEER_MODELS if peers else ["base rates", *(model for model in MODELS if is_measured(name, model))]
    for seed in range(seeds):
        for model in models:
            yield job("scores", model, seed, model=model, seed=seed)
    for model in (model for model in models if model != REFERENCE):
        for against in (REFERENCE,) if peers else (REFERENCE, "item"):
            yield job("difference", model, against, seeds, model=model, against=against, seeds=seeds)
    if peers:
        return
    for model in ("bias", "confusion"):
        yield job("gains", model, 0, model=model)
    yield job("raters", REFERENCE, 0, model=REFERENCE)
    for column in GROUPED.get(name, ()):
        yield job("groups", column, 0, column=column)


def main() -> None:
    parser = make_parser(__doc__, threads=1, block=", ".join(rater_tables.TABLES))
    parser.add_argument("what", choices=("measure", "peers", "report"))
    parser.add_argument("--sets", nargs="+", choices=SETS, default=[*SETS], help="(default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="number of seeds (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/raters"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    store = Store(options.out / "results")
    for name in options.sets if options.what != "report" else ():
        for key, run in jobs_of(name, options.out.absolute(), options.seeds, options.what == "peers"):
            print(store.get(key, run), flush=True)
    if options.what != "report":
        return
    if rows := store.rows:
        rows.sort(
            key=lambda row: json.dumps({name: row.get(name) for name in ("what", "set", "model", "column", "seed")})
        )
        STORED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    rows = json.loads(STORED.read_text(encoding="utf-8"))
    for block, write in rater_tables.TABLES.items():
        print(text := write(rows).strip())
        if options.page:
            write_block(options.page, block, text)


if __name__ == "__main__":
    launch(main)
