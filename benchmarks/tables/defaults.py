"""How good default runs are on tables for which nobody tuned them.

    python benchmarks/tables/defaults.py [--heads LDLF] [--sets M2B Movie] [--page docs/results/tables.md]

Tables: the twelve of ``collection.py``, at most 3,000 rows each. Folds: the first three of ten, of whole groups where
these are known. A figure is the mean KL of a run divided by that of extra trees. Each head has some settings, which are
options of its default run; the line *left one out* takes for each table the setting that has the smallest mean
logarithm of the figures on the other tables. Every result is stored: the same command resumes where it was stopped.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch
from rich.progress import track

from benchmarks.common.script import launch, make_parser, show, write_block
from benchmarks.tables.calibrated import run
from benchmarks.tables.collection import FAMILIES, TABLES, read_table
from ldl.jobs.store import JOBS_FOLDER, Key, Result, Store
from ldl.reports.files import markdown

FOIL = "extra trees"
EXTRA_TREES = {"trees": 500, "depth": 64, "search": "random", "features": 0.33, "min_leaf": 2}
SETTINGS: dict[str, dict[str, list[str]]] = {
    FOIL: {
        "": ["-c", "tabular_structrf", *(f"--model.head.{name}={value}" for name, value in EXTRA_TREES.items())]
        + ["--data.val_fraction=0"]
    },
    "LDLF": {
        "default": ["-c", "tabular_ldlf"],
        "more mixup": ["-c", "tabular_ldlf", "--model.mixup=0.4", "--model.backbone.dropout=0.3"],
    },
    "Softmax": {
        "default": ["-c", "tabular_softmax"],
        "more mixup": ["-c", "tabular_softmax", "--model.mixup=0.4", "--model.backbone.dropout=0.3"],
    },
    "BoostedTrees": {"default": ["-c", "tabular_boostedtrees", "--data.val_fraction=0"]},
}
"""Command lines of the settings of each head."""
FOLDS = range(3)
Figures = dict[tuple[str, str], dict[str, float]]
"""Mean KL of each table by (head, setting)."""


def main() -> None:
    """Measure what is missing, and print the table."""
    parser = make_parser(__doc__, threads=1, block="defaults")
    parser.add_argument("--heads", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), help="(default: all)")
    parser.add_argument("--settings", nargs="+", help="(default: all)")
    parser.add_argument("--sets", nargs="+", choices=list(TABLES), default=list(TABLES), help="(default: all)")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--out", type=Path, default=Path("runs/defaults"), help="(default: %(default)s)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    store = Store(options.out / JOBS_FOLDER)
    jobs = [
        (table, head, setting, fold)
        for head in options.heads
        for setting in SETTINGS[head]
        if not options.settings or not setting or setting in options.settings
        for table in options.sets
        for fold in FOLDS
    ]
    for job in [] if options.report else track(jobs, description="defaults"):
        store.get(key_of(*job), partial(measure, options.out, *job))
    header, lines = tabulate(figures_of(store))
    show("KL, divided by that of extra trees", header, lines)
    if options.page:
        text = (
            "Folds 0 to 2 of ten, one seed. KL of default runs, divided by that of extra trees: `StructRF` with random "
            "thresholds, 500 trees, a third of the features and two rows in a leaf. `LDLF` and `Softmax` hold out a "
            "tenth of the training rows, where rows suffice, to choose the epoch and to calibrate; the others learn "
            f"from all.\n\n{markdown(header, lines)}"
        )
        write_block(options.page, "defaults", text)


def key_of(table: str, head: str, setting: str, fold: int) -> Key:
    """Return the key of a result, which changes with the options of the setting."""
    return {"table": table, "head": head, "setting": setting, "words": " ".join(SETTINGS[head][setting]), "fold": fold}


def measure(folder: Path, name: str, head: str, setting: str, fold: int) -> Result:
    """Return the mean KL of the test rows of a fold."""
    path = folder / "tables" / f"{name.replace(', ', '_').replace(' ', '_')}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        table = read_table(name)
        columns = {} if table.groups is None else {"group": np.unique(table.groups, return_inverse=True)[1]}
        np.savez(path, features=table.features.numpy(), labels=table.target.numpy(), **columns)  # type: ignore[arg-type]
    words = [f"--data.path={path.absolute()}", f"--data.fold={fold}", "--data.folds=10", "--data.fold_seed=0"]
    if "group" in np.load(path, allow_pickle=False):
        words += ["--data.group_key=group"]
    metrics = run([*SETTINGS[head][setting], *words])[2]
    return {"kl": metrics["kl"]}


def figures_of(store: Store) -> Figures:
    """Return the means of the tables that have all folds."""
    rows = {(row["head"], row["setting"], row["words"], row["table"], row["fold"]): row["kl"] for row in store.rows}
    figures: Figures = {}
    for head, settings in SETTINGS.items():
        for setting, words in settings.items():
            measured = {
                table: [rows.get((head, setting, " ".join(words), table, fold)) for fold in FOLDS] for table in TABLES
            }
            whole = {name: [each for each in kl if each is not None] for name, kl in measured.items()}
            figures[head, setting] = {name: float(np.mean(kl)) for name, kl in whole.items() if len(kl) == len(FOLDS)}
    return figures


def tabulate(figures: Figures) -> tuple[list[str], list[list[str]]]:
    """Return a column for each table: the settings of every head, and which one is chosen without the table."""
    foil = figures[FOIL, ""]
    families = list(dict.fromkeys(FAMILIES[name] for name in TABLES))
    lines = []
    for head in list(SETTINGS)[1:]:
        ratios = {
            setting: [
                float(np.mean([kl[name] / foil[name] for name in TABLES if FAMILIES[name] == family]))
                for family in families
            ]
            for setting in SETTINGS[head]
            if (kl := figures[head, setting]).keys() >= TABLES.keys() and foil.keys() >= TABLES.keys()
        }
        if len(ratios) > 1:
            values = np.array(list(ratios.values()))
            logs = np.log(values)
            chosen = (logs.sum(1, keepdims=True) - logs).argmin(0)
            lines.append(_line(f"{head}, left one out", values[chosen, np.arange(len(families))].tolist()))
        lines += [_line(f"{head}, {setting}", each) for setting, each in ratios.items()]
    return ["head and hyperparameters", *families, "mean", "worst"], lines


def _line(name: str, ratios: list[float]) -> list[str]:
    return [name, *(f"{ratio:.3f}" for ratio in ratios), f"{np.mean(ratios):.3f}", f"{max(ratios):.3f}"]


if __name__ == "__main__":
    launch(main)
