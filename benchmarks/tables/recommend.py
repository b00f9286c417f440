"""Whether ``--stage compare`` recommends well, on synthetic tables of three natures that chose no hyperparameter.

    python benchmarks/tables/recommend.py [--natures smooth noise] [--draws 10] [--page docs/results/tables.md]

Each draw is a table of 300 rows, 10 features and 4 labels, on which the candidates of ``recommend.yaml`` are compared
in five folds, as a new user would. Then every candidate is fitted on all rows, with the hyperparameters that the
comparison would choose for it there, and evaluated on 5,000 fresh rows of the same law, which the comparison never saw.
The loss of the recommended candidate is its mean KL there less that of the best. It counts as good within one standard
error:

- ``of a table``: the standard deviation of the paired differences between the rows over the root of the rows of the
  table. Chance moves the same difference by that much if it is measured on the table. The bar is 9 of 10.
- ``of the fresh rows``: over the root of the 5,000, a quarter of the former.

On noise none can be better than the mean predictor, with which the recommended candidate is compared there. A further
column counts the first criterion for the simplest candidate within one standard error of the best.
"""

from __future__ import annotations

import contextlib
import copy
import json
import logging
import math
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
import yaml
from rich.progress import track
from scipy.special import softmax

from benchmarks.common.data import inputs_of
from benchmarks.common.script import launch, make_parser, show, write_block
from ldl.command import main as train
from ldl.command.arguments import tokenize
from ldl.command.command_line import Command
from ldl.jobs.store import JOBS_FOLDER, Key, Result, Store
from ldl.metrics.functional import kl
from ldl.protocols import Fold
from ldl.reports.files import markdown
from ldl.search.candidates import make_candidates
from ldl.search.comparison import read_comparison
from ldl.search.selection import ALL
from ldl.search.statistics import Outcome

CONFIG = Path(__file__).with_suffix(".yaml")
RUNS = Path(__file__).resolve().parents[2] / "configs" / "runs"
OPTIONS = ["--data.folds=5", "--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"]
ERRORS = ["of a table", "of the fresh rows"]
HEADER = ["nature", "draws", *ERRORS, "simplest", "lost, median", "lost, most", "recommended", "best"]

ROWS, FRESH = 300, 5000
FEATURES, LABELS = 10, 4
NOISE = 0.4
"""Standard deviation of the noise that is added to each label's score of a row."""


def smooth(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return scores (rows, 4): for each label a sum of 6 waves over 4 features, each of about half a period."""
    used = rng.choice(FEATURES, 4, replace=False)
    waves, phases = rng.normal(0, 0.5, (len(used), 6)), rng.uniform(0, 2 * np.pi, 6)
    return np.sin(features[:, used] @ waves + phases) @ rng.normal(0, np.sqrt(2 / 6), (6, LABELS))


def stepwise(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return scores (rows, 4): the sum of 3 random trees of depth 3 with thresholds near the middle of features."""
    scores = np.zeros((len(features), LABELS))
    for _ in range(3):
        leaf = np.zeros(len(features), dtype=int)
        for level in range(3):
            feature, threshold = rng.integers(FEATURES, size=2**level), rng.normal(0, 0.5, 2**level)
            leaf = 2 * leaf + (features[np.arange(len(leaf)), feature[leaf]] > threshold[leaf])
        scores += rng.normal(0, np.sqrt(1 / 3), (8, LABELS))[leaf]
    return scores


def noise(features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return scores (rows, 4) that do not depend on the features."""
    return rng.normal(0, 0.5, LABELS) + rng.normal(0, 1, (len(features), LABELS))


NATURES: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "smooth": smooth,
    "stepwise": stepwise,
    "noise": noise,
}


def draw_table(nature: str, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw independent standard normal features (rows, 10) and distributions (rows, 4) by a law that the seed draws.

    Distributions are a softmax of scores with a standard deviation of about 1, plus noise.
    """
    rng = np.random.default_rng([seed, *nature.encode()])
    features = rng.normal(size=(rows, FEATURES))
    scores = NATURES[nature](features, rng)
    return features, softmax(scores + rng.normal(0, NOISE, scores.shape), axis=1)


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = make_parser(__doc__, threads=1, block="recommend")
    parser.add_argument("--natures", nargs="+", choices=NATURES, default=list(NATURES), help="(default: all)")
    parser.add_argument("--draws", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/recommend"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    store = Store(options.out / JOBS_FOLDER)
    spec = digest()
    keys = [
        {"nature": nature, "draw": draw, "rows": ROWS, "fresh": FRESH, "spec": spec}
        for draw in range(options.draws)
        for nature in options.natures
    ]
    rows = [store.get(key, partial(measure, key, options.out)) for key in track(keys, description="draws")]
    lines = [summary(nature, [row for row in rows if row["nature"] == nature]) for nature in options.natures]
    show("what --stage compare recommends, against the best on fresh rows", HEADER, lines)
    if options.page:
        text = f"Tables of {ROWS} rows, five folds; the best on {FRESH:,} fresh rows."
        write_block(options.page, "recommend", f"{text}\n\n{markdown(HEADER, lines)}")


def digest() -> int:
    """Return a number that changes with the configuration, and with the runs that its candidates name."""
    content = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    named = [entry["run"] for entry in content["candidates"].values() if isinstance(entry["run"], str)]
    runs = [yaml.safe_load((RUNS / f"{name}.yaml").read_text(encoding="utf-8")) for name in named]
    return zlib.crc32(json.dumps([content, runs]).encode())


def measure(key: Key, out: Path) -> Result:
    """Return every candidate's KL of the folds and on fresh rows, and the deviations of their differences there."""
    features, target = draw_table(key["nature"], ROWS + FRESH, key["draw"])
    folder = out / "_".join(str(key[name]) for name in ("nature", "draw", "rows", "spec"))
    folder.mkdir(parents=True, exist_ok=True)
    table, whole = folder / "table.npz", folder / "whole.npz"
    np.savez(table, features=features[:ROWS], labels=target[:ROWS])
    np.savez(whole, features=features, labels=target)
    command = ["--stage", "compare", "-c", str(CONFIG), "--run_dir", str(folder / "run"), *OPTIONS]
    start = time.process_time()
    with (folder / "output.txt").open("w", encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
        train([*command, f"--data.path={table}"])
        seconds = time.process_time() - start
        losses = fresh_kl([*command, f"--data.path={whole}"])
    whole.unlink()
    found = json.loads((folder / "run" / "comparison.json").read_text(encoding="utf-8"))
    return {
        "kl": {each["name"]: [fold["measures"]["kl"] for fold in each["folds"]] for each in found["candidates"]},
        "fresh_kl": {name: float(values.mean()) for name, values in losses.items()},
        "deviations": {
            name: {other: float(np.std(values - its, ddof=1)) for other, its in losses.items()}
            for name, values in losses.items()
        },
        "seconds": seconds,
    }


def fresh_kl(command: list[str]) -> dict[str, np.ndarray]:
    """Return the KL (fresh,) of every candidate on the fresh rows, chosen and fitted on the rows of the table.

    Args:
        command: Command of the comparison, on the whole table.
    """
    file = read_comparison(Command(tokenize(command)))
    losses, table, none = {}, np.arange(ROWS), np.arange(0)
    for candidate in make_candidates(file):
        for setting in candidate.settings:
            candidate.open(setting, 0).split = Fold(table, none, none)
        setting = file.selection.choose(candidate, ALL).setting
        data = copy.copy(candidate.open(setting, 0))
        data.split = Fold(table, none, np.arange(ROWS, data.size))
        data.prepare_fold()
        task, _ = candidate.fit(setting, data)
        with torch.no_grad():
            predicted = task.eval()(inputs_of(data)[ROWS:]).double()
        losses[candidate.name] = kl(predicted, data.columns["target"][ROWS:].double()).numpy()
    return losses


def outcome_of(row: Result) -> Outcome:
    """Return the outcome of a comparison."""
    return Outcome({
        name: [{"fold": fold, "seconds": 0.0, "measures": {"kl": value}} for fold, value in enumerate(values)]
        for name, values in row["kl"].items()
    })  # fmt: skip


def judged(row: Result, taken: str) -> dict[str, Any]:
    """Return what a candidate loses, as a share of the best KL, and whether it is good by each of :data:`ERRORS`."""
    fresh = row["fresh_kl"]
    best = min(fresh, key=fresh.__getitem__)
    baseline = next(iter(outcome_of(row).results)) if row["nature"] == "noise" else best
    lost, deviation = fresh[taken] - fresh[baseline], row["deviations"][taken][baseline]
    errors = deviation / math.sqrt(row["rows"]), deviation / math.sqrt(row["fresh"])
    good = [bool(lost <= error) for error in errors]
    return {"taken": taken, "best": best, "lost": lost / fresh[baseline], "good": good}


def summary(nature: str, rows: list[Result]) -> list[str]:
    """Return a line below :data:`HEADER`."""
    outcomes = [(row, outcome_of(row)) for row in rows]
    found = [judged(row, outcome.recommended) for row, outcome in outcomes]
    near = [judged(row, next(name for name in outcome.kl if outcome.is_near_best(name))) for row, outcome in outcomes]
    good = np.sum([each["good"] for each in found], axis=0)
    simplest = sum(each["good"][0] for each in near)
    lost = np.array([each["lost"] for each in found])
    counts = (Counter(each[which] for each in found).most_common() for which in ("taken", "best"))
    names = (", ".join(f"{name} {count}" for name, count in each) for each in counts)
    numbers = [*map(str, [len(found), *good, simplest]), f"{np.median(lost):.1%}", f"{lost.max():.1%}"]
    return [nature, *numbers, *names]


if __name__ == "__main__":
    launch(main)
