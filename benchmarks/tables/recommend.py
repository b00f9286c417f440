"""Whether ``--stage compare`` recommends well, on made tables of three natures that no setting was chosen for.

    python benchmarks/tables/recommend.py [--natures smooth noise] [--draws 10] [--page docs/results/tables.md]

Each draw is a table of 300 rows, 10 features and 4 labels (``natures.py``), on which the candidates of
``recommend.yaml`` are compared in five folds, as a stranger would. Then every candidate is fitted on all rows, in the
setting that the comparison would choose for it there, and measured on 5,000 fresh rows of the same law: which one was
best is then known, and no row of it was seen by the comparison. What the recommended one loses is its mean KL there
less that of the best. It counts as good within one standard error:

- ``of a table``: the deviation of the paired differences between the rows, over the root of the rows of the table.
  That is how much chance moves the same difference where it is measured on the table, so that no rule could tell
  them apart from it: the bar, 9 of 10, is for this one;
- ``of the fresh rows``: over the root of the 5,000. It asks for the best itself, or its equal to within a quarter of
  what the table can tell.

On noise none can be better than the mean predictor, against which the recommended one is measured there. A last column
has the bar's count had the simplest candidate within one standard error of the best been recommended.
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
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
import yaml
from rich.progress import track

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import inputs_of
from benchmarks.common.runs import run_config
from benchmarks.common.tables import show, write_block
from benchmarks.tables.natures import NATURES, draw_table
from ldl.cells.store import Row, Store
from ldl.cli import main as train
from ldl.cli.training import parse_anew
from ldl.comparison.outcome import Outcome
from ldl.metrics.functional import kl
from ldl.protocols import Fold
from ldl.reports.files import markdown
from ldl.running.candidates import make_candidates
from ldl.running.comparison_file import read_comparison

CONFIG = Path(__file__).with_suffix(".yaml")
OPTIONS = ["--data.folds=5", "--trainer.accelerator=cpu", "--trainer.enable_progress_bar=false"]
ERRORS = ["of a table", "of the fresh rows"]
HEADER = ["nature", "draws", *ERRORS, "simplest", "lost, median", "lost, most", "recommended", "best"]


def main() -> None:
    """Measure what is missing, print the table."""
    parser = make_parser(__doc__, threads=1, block="recommend")
    parser.add_argument("--config", type=Path, default=CONFIG, help="(default: %(default)s)")
    parser.add_argument("--natures", nargs="+", choices=NATURES, default=list(NATURES), help="(default: all)")
    parser.add_argument("--draws", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--first", type=int, default=0, help="number, and seed, of the first draw (default: 0)")
    parser.add_argument("--rows", type=int, default=300, help="(default: %(default)s)")
    parser.add_argument("--fresh", type=int, default=5000, help="(default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="one draw of 60 rows, 200 fresh")
    parser.add_argument("--report", action="store_true", help="write the table of what is measured, measure nothing")
    parser.add_argument("--out", type=Path, default=Path("runs/recommend"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    for name in ("pytorch_lightning", "lightning_fabric"):
        logging.getLogger(name).setLevel(logging.ERROR)
    rows, fresh, draws = (60, 200, 1) if options.quick else (options.rows, options.fresh, options.draws)
    store = Store(options.out / "cells")
    spec = digest(options.config)
    keys = [
        {"nature": nature, "draw": options.first + draw, "rows": rows, "fresh": fresh, "spec": spec}
        for draw in range(draws)
        for nature in options.natures
    ]
    for key in [] if options.report else track(keys, description="draws"):
        store.cell(key, partial(measure, options.config, key, options.out))
    cells = [cell for key in keys if (cell := store.find(key))]
    lines = [line for nature in options.natures if (line := summary(nature, cells))]
    show("what --stage compare recommends, against the best on fresh rows", HEADER, lines)
    if options.page:
        said = f"Tables of {rows} rows, five folds; the best on {fresh:,} fresh rows."
        write_block(options.page, "recommend", f"{said}\n\n{markdown(HEADER, lines)}")


def digest(config: Path) -> int:
    """Changes with the configuration, and with the runs that its candidates name."""
    content = yaml.safe_load(config.read_text(encoding="utf-8"))
    named = [entry["run"] for entry in content["candidates"].values() if isinstance(entry["run"], str)]
    runs = [yaml.safe_load(run_config(*name.split("/")).read_text(encoding="utf-8")) for name in named]
    return zlib.crc32(json.dumps([content, runs]).encode())


def measure(config: Path, key: Row, out: Path) -> Row:
    """One draw: every candidate's KL of the folds and on fresh rows, and the deviations of their differences there."""
    features, target = draw_table(key["nature"], key["rows"] + key["fresh"], key["draw"])
    folder = out / "_".join(str(key[name]) for name in ("nature", "draw", "rows", "spec"))
    folder.mkdir(parents=True, exist_ok=True)
    table, whole = folder / "table.npz", folder / "whole.npz"
    np.savez(table, features=features[: key["rows"]], labels=target[: key["rows"]])
    np.savez(whole, features=features, labels=target)
    command = ["--stage", "compare", "-c", str(config), "--run_dir", str(folder / "run"), *OPTIONS]
    start = time.process_time()
    with (folder / "output.txt").open("w", encoding="utf-8") as stream, contextlib.redirect_stdout(stream):
        train([*command, f"--data.path={table}"])
        seconds = time.process_time() - start
        losses = fresh_kl([*command, f"--data.path={whole}"], key["rows"])
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


def fresh_kl(command: list[str], rows: int) -> dict[str, np.ndarray]:
    """KL (fresh,) of every candidate on the rows after the first ``rows``, which it is tuned and fitted on.

    Args:
        command: It compares on all rows.
        rows: How many of them are the table.
    """
    file = read_comparison(command)
    assert file is not None
    losses, table, none = {}, np.arange(rows), np.arange(0)
    for candidate in make_candidates(file, parse_anew):
        for setting in candidate.settings:
            candidate.open(setting, 0).split = Fold(table, none, none)
        setting = file.choice.best(candidate, None).setting
        data = copy.copy(candidate.open(setting, 0))
        data.split = Fold(table, none, np.arange(rows, data.size))
        data.prepare_fold()
        task, _ = candidate.fit(setting, data)
        with torch.no_grad():
            predicted = task.eval()(inputs_of(data)[rows:]).double()
        losses[candidate.name] = kl(predicted, data.columns["target"][rows:].double()).numpy()
    return losses


def outcome_of(cell: Row) -> Outcome:
    """What the comparison came to."""
    return Outcome({
        name: [{"fold": fold, "seconds": 0.0, "measures": {"kl": value}} for fold, value in enumerate(values)]
        for name, values in cell["kl"].items()
    })  # fmt: skip


def judged(cell: Row, taken: str) -> dict[str, Any]:
    """What a candidate loses, as a share of the best KL, and whether it is good by each of :data:`ERRORS`."""
    fresh = cell["fresh_kl"]
    best = min(fresh, key=fresh.__getitem__)
    foil = outcome_of(cell).foil if cell["nature"] == "noise" else best
    lost, deviation = fresh[taken] - fresh[foil], cell["deviations"][taken][foil]
    errors = deviation / math.sqrt(cell["rows"]), deviation / math.sqrt(cell["fresh"])
    return {"taken": taken, "best": best, "lost": lost / fresh[foil], "good": [bool(lost <= error) for error in errors]}


def summary(nature: str, cells: list[Row]) -> list[str]:
    """A line below :data:`HEADER`; none where nothing is measured."""
    outcomes = [(cell, outcome_of(cell)) for cell in cells if cell["nature"] == nature]
    if not outcomes:
        return []
    found = [judged(cell, outcome.recommended) for cell, outcome in outcomes]
    near = [judged(cell, next(name for name in outcome.kl if outcome.within(name))) for cell, outcome in outcomes]
    good = np.sum([each["good"] for each in found], axis=0)
    simplest = sum(each["good"][0] for each in near)
    lost = np.array([each["lost"] for each in found])
    counts = (Counter(each[which] for each in found).most_common() for which in ("taken", "best"))
    names = (", ".join(f"{name} {count}" for name, count in each) for each in counts)
    figures = [*map(str, [len(found), *good, simplest]), f"{np.median(lost):.1%}", f"{lost.max():.1%}"]
    return [nature, *figures, *names]


if __name__ == "__main__":
    launch(main)
