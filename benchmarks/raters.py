"""Models of raters on text with votes: item alone, bias and confusion, beside competing packages on the same vectors.

``measure`` trains ``ldl -c text`` with the default options on every fold with three seeds. It stores the metrics of
each set, model and seed, a description of the raters, and metrics of groups of raters. ``peers`` does the same with
scikit-activeml and crowd-kit, on the vectors and the folds of ``ldl``. Predictions and runs are written below
``--out``. ``report`` writes the tables. The sets lie below ``LDL_DATA/text``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr

from benchmarks.common import rater_tables
from benchmarks.common.rater_peers import PEERS, Setting, Votes, population, train_defaults, tune
from benchmarks.common.rater_scores import Predictions, base_rates, gain_by_votes, nll_of, paired_difference, score
from benchmarks.common.rater_sets import SETS, Sample, open_folds, write_files
from benchmarks.common.script import launch, make_parser, write_block
from ldl.annotations.votes import SingleVotes
from ldl.command.command_line import parse_anew
from ldl.command.config import Config
from ldl.errors import LDLError
from ldl.inference import Predictor
from ldl.jobs.store import Key, Result, Store
from ldl.raters import measure_groups
from ldl.reports.raters import describe_model
from ldl.run.parts import build_trainer
from ldl.run.training import fit_and_test, seed_everything
from ldl.search.candidates import NO_FILES
from ldl.task import Task

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
ALL = "all raters"
GROUPED = {"POPQUORN": (ALL, "gender", "age")}
"""Features by which raters are grouped; :data:`ALL` is one group."""
REFERENCE = "bias"
"""Model with which the others are compared on a published split."""


def is_measured(name: str, model: str) -> bool:
    """Return whether a set has the features that a model of ldl takes."""
    return bool(SETS[name].features) or "features" not in model


def configure(name: str, model: str, seed: int, out: Path) -> Config:
    """Return the configuration of ``ldl -c text`` with default options for a model on a set."""
    files, chosen = write_files(name, out / "data"), SETS[name]
    words = ["-c", "text", f"--data.path={files.comments}", f"--data.votes={files.votes}", *MODELS[model]]
    if "features" in model:
        words.append(f"--data.rater_features={json.dumps(chosen.features)}")
    words += [f"--data.{option}={value}" for option, value in chosen.options.items()]
    return parse_anew([*words, f"--seed_everything={seed}"])


class Trained(NamedTuple):
    """A trained model, its test metrics by ldl, and the table of its raters, if it is described."""

    task: Task
    metrics: dict[str, float]
    raters: pd.DataFrame | None


def train(name: str, model: str, seed: int, out: Path, samples: Sequence[Sample]) -> Iterator[Trained]:
    """Train a model on each fold as ``ldl --stage crossval`` does, without files, and yield it.

    Raises:
        LDLError: The data module has another split than a sample.
    """
    config = configure(name, model, seed, out)
    data = config.instantiate("data")
    data.setup()
    for fold, sample in enumerate(samples):
        if data.num_folds > 1:
            data.select_fold(fold)
        if not np.array_equal(data.split.test, sample.split.test):
            raise LDLError(f"{name}, fold {fold}: the run has another test set than the competing packages")
        seed_everything(seed)
        task = config.instantiate("model")
        task.build(data.labels, data.input_shape, raters=data)
        trainer = build_trainer(config, [], **NO_FILES)
        metrics = fit_and_test(trainer, task, data)[0]["metrics"]
        yield Trained(task, metrics, describe_model(trainer, task) if (model, seed) == (REFERENCE, 0) else None)


def predict_fold(name: str, trained: Trained, sample: Sample, out: Path) -> Predictions:
    """Return the predictions of a trained model for the test set of a fold.

    Raises:
        LDLError: Their NLL is not that of the test of ldl.
    """
    comments = pd.read_csv(write_files(name, out / "data").comments, dtype=str, keep_default_na=False)
    test, single = comments.iloc[sample.split.test], sample.votes_on(sample.split.test)
    predictor = Predictor(trained.task)
    shared = predictor.predict(test).distribution
    if trained.task.raters is None:
        rated = shared[single.item]
    else:
        raters = [str(name) for name in single.names[single.rater]]
        rated = predictor.predict(test.iloc[single.item], rater=raters).distribution
    nll, tested = float(nll_of(rated, single.label).mean()), trained.metrics["rater_nll"]
    if not np.isclose(nll, tested, atol=1e-3):
        raise LDLError(f"{name}: the NLL of a vote is {nll:.4f} by the predictor, and {tested:.4f} by the test")
    return Predictions(shared, rated)


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
        """Return the predictions for a fold, and the setting that a competing package has chosen."""
        sample = self.samples[fold]
        if model == "base rates":
            return base_rates(sample.single, sample.split.train, sample.split.test, len(sample.labels)), {}
        file = self._file(model, seed, fold)
        if not file.is_file() and model in MODELS:
            self._train(model, seed)
        elif not file.is_file():
            setting = self._of_fold(model, 0, fold)[1] if seed else {}
            first = Setting(setting["lr"], setting["factor"]) if setting else None
            self._write(file, *predict_peer(model, seed, sample, first))
        with np.load(file) as stored:
            return Predictions(stored["population"], stored["votes"]), json.loads(str(stored["chosen"]))

    def _file(self, model: str, seed: int, fold: int, ending: str = "npz") -> Path:
        return self.out / "predictions" / f"{self.name}_{model.replace(', ', ' ')}_{seed}_{fold}.{ending}"

    def _write(self, file: Path, predicted: Predictions, chosen: Result) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        np.savez(file, **predicted._asdict(), chosen=json.dumps(chosen))

    def _train(self, model: str, seed: int) -> None:
        """Train a model of ldl on all folds, and store its predictions and tables of raters."""
        for fold, trained in enumerate(train(self.name, model, seed, self.out, self.samples)):
            file = self._file(model, seed, fold)
            self._write(file, predict_fold(self.name, trained, self.samples[fold], self.out), {})
            if trained.raters is not None:
                trained.raters.to_csv(self._file(model, seed, fold, "csv"), index=False)

    def scores(self, model: str, seed: int) -> Result:
        """Return the metrics of a model, a list over folds each."""
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
        mean, low, high = paired_difference(losses[0], losses[1], item)
        return {"mean": mean, "low": low, "high": high}

    def gains(self, model: str, seed: int) -> Result:
        """Return by how much a model lowers the NLL of a vote of the item alone, by the training votes of the rater."""
        rows = []
        for sample, ours, item in zip(self.samples, self.predictions(model, seed), self.predictions("item", seed)):
            test, train = sample.votes_on(sample.split.test), sample.votes_on(sample.split.train)
            trained = np.bincount(train.rater, minlength=len(train.names))
            ours_nll, item_nll = (nll_of(predicted.votes, test.label) for predicted in (ours, item))
            rows += gain_by_votes(ours_nll, item_nll, test.rater, trained)
        return {"bins": rows}

    def groups(self, column: str, seed: int) -> Result:
        """Return how well the population's predictions hold for groups of raters, and the NLL with raters known."""
        predicted, votes = self.pooled("item", seed)
        rated, _ = self.pooled(REFERENCE, seed)
        table = pd.read_csv(write_files(self.name, self.out / "data").votes, dtype=str, keep_default_na=False)
        features = table.drop_duplicates("rater").set_index("rater").assign(**{ALL: ""})
        group = features[column].loc[list(map(str, votes.names))].to_numpy()
        labels = self.samples[0].labels
        shared = measure_groups(predicted.population.astype(float), votes, group, labels)
        single = votes._replace(item=np.arange(len(votes.item)))
        known = measure_groups(rated.votes.astype(float), single, group, labels)
        shared["known"], shared["known_se"] = known["nll"], known["nll_se"]
        return {"rows": shared.reset_index().to_dict("records")}

    def raters(self, model: str, seed: int) -> Result:
        """Return the table of raters of each fold in short, with how well their bias holds on held-out votes."""
        self.predictions(model, seed)
        rows = []
        for fold, (sample, item) in enumerate(zip(self.samples, self.predictions("item", seed))):
            table = pd.read_csv(self._file(model, seed, fold, "csv"), dtype={"rater": str}).set_index("rater")
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
        informative = [float(row[f"informativeness{end}"]) for end in ("", "_lower_90", "_upper_90")]
        examples.append([int(row["votes"]), float(bias[rater]), float(low[rater]), float(high[rater]), *informative])
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
    for model in (model for model in models if SETS[name].published and model != REFERENCE):
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
        rows.sort(key=lambda row: (list(SETS).index(row["set"]), row["what"], json.dumps(row, sort_keys=True)))
        STORED.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    rows = json.loads(STORED.read_text(encoding="utf-8"))
    for block, write in rater_tables.TABLES.items():
        print(text := write(rows).strip())
        if options.page:
            write_block(options.page, block, text)


if __name__ == "__main__":
    launch(main)
