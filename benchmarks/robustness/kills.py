"""Runs that are killed at random moments, resumed, and compared with runs that never were.

    python benchmarks/robustness/kills.py [--kills 50 --told 10 --seed 0 --page docs/results/kills.md]

Every run is short. SIGKILL goes to all its processes, SIGINT too, as from a terminal, SIGTERM to the first one, as from
a launcher. A run with a checkpoint is resumed from it, any other one started again in the same directory, as are
cross-validations. Then its checkpoints, results, predictions and ``metrics.csv`` must be those of the run that was
never killed, to the last bit, and none of its processes may be left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import data_file
from benchmarks.common.runs import CONFIGS, run_config
from benchmarks.common.tables import show, write_block
from benchmarks.robustness.processes import Run
from ldl.cells.store import Row, Store
from ldl.cli import main as train
from ldl.errors import LDLError
from ldl.reports.files import markdown

QUIET = (
    "--wandb.mode disabled --trainer.accelerator cpu --trainer.enable_progress_bar false "
    "--trainer.enable_model_summary false"
)
DIGITS = "--data.turns 1 --data.folds 3 --data.batch_size 100 --trainer.max_epochs 8"
SMALL = "--model.head.trees 3 --model.head.depth 4"
HEADER = ["run", "processes", "signal", "times", "resumed", "started again", "equal"]


@dataclass(frozen=True)
class Case:
    """A run: its configuration and options, and how many processes it has."""

    config: Path
    options: str
    processes: int = 1


def cases(folder: Path) -> dict[str, Case]:
    """All runs; pictures for those on edges are made in a folder."""
    digits = CONFIGS / "default.yaml"
    ldlf = f"{DIGITS} {SMALL} --model.head.hidden [16] --model.head.dropout 0.2"
    joint = f"{ldlf} --model.head.outputs 10 --model.head.batches 7 --model.head.tree_dropout 0.3"
    alternating = f"{ldlf} --model.head.outputs null --model.head.ensemble alternating"
    softmax = f"--model.head Softmax {DIGITS} --model.mixup 0.4 --model.backbone.flatten true"
    table = f"--data.path {data_file('ldl/SJAFFE.mat')} --data.val_fraction 0.1"
    bags = f"--data.path {data_file('mil/musk1.csv')}"
    forest = "--model.head.trees 2 --model.head.votes 1 --model.head.patches 300"
    structrf = f"{table} --model.head.trees 20 --model.head.depth 10"
    return {
        "LDLF, joint": Case(digits, joint),
        "LDLF, alternating": Case(digits, alternating),
        "LDLF, best selected": Case(digits, f"{joint} --select best"),
        "LDLF, loader process": Case(digits, f"{joint} --data.num_workers 1"),
        "LDLF of two": Case(digits, joint, 2),
        "Softmax with mixup": Case(digits, softmax),
        "Softmax of two": Case(digits, softmax, 2),
        "StructRF": Case(run_config("tabular", "structrf"), structrf),
        "StructRF of two": Case(run_config("tabular", "structrf"), structrf, 2),
        "DSNA": Case(run_config("tabular", "dsna"), f"{table} --model.head.trees 5"),
        "MSLP": Case(run_config("tabular", "mslp"), table),
        "MaxEnt": Case(run_config("tabular", "maxent"), table),
        "AAKNN": Case(run_config("tabular", "aaknn"), table),
        "CostSensitiveForest": Case(run_config("tabular", "costsensitiveforest"), f"{table} --model.head.trees 5"),
        "MILBoost": Case(run_config("bags", "milboost"), bags),
        "MPLBoost": Case(run_config("bags", "mplboost"), bags),
        "StructuredEdges": Case(run_config("bsds", "structured"), f"{_edges(folder)} {forest}"),
        "cross-validation": Case(digits, f"{joint} --trainer.max_epochs 3 --stage crossval"),
        "cross-validation of two": Case(digits, f"{joint} --trainer.max_epochs 2 --stage crossval", 2),
    }


def _edges(folder: Path) -> str:
    """The option of a set of three images of BSDS500."""
    whole = Path(os.environ.get("LDL_DATA") or "data") / "BSDS500" / "data"
    for part, number in (("train", 2), ("val", 1)):
        for image in sorted((whole / "images" / part).glob("*.jpg"))[:number]:
            for kind, name in (("images", image.name), ("groundTruth", f"{image.stem}.mat")):
                place = folder / "edges" / kind / part / name
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(whole / kind / part / name, place)
    return f"--data.path {folder / 'edges'}"


def trials(case: Case, signals: list[int], rng: np.random.Generator, folder: Path) -> Iterator[Row]:
    """Run a case, then once more for each signal, which comes at a random moment; what became of each."""
    options = ["-c", str(case.config), *QUIET.split(), *case.options.split()]
    # Here, so that compiled code is compiled once: forked processes have it. They cannot share a server of loaders.
    train([*options, "--data.num_workers", "0", "--run_dir", str(folder / "first")])
    unbroken = folder / "unbroken"
    run = Run([*options, "--run_dir", str(unbroken)], folder / "unbroken.log", case.processes)
    if run.wait() != 0:
        raise LDLError(
            f"the run of {case} fails by itself: {(folder / 'unbroken.log').read_text(encoding='utf-8')[-2000:]}"
        )
    seconds = time.monotonic() - run.begun
    for number, sent in enumerate(signals):
        place, log_file = folder / str(number), folder / f"{number}.log"
        row: Row = {"seconds": round(seconds, 1)}
        while True:
            moment = float(rng.uniform(0.02, 0.98) * seconds)
            run = Run([*options, "--run_dir", str(place)], log_file, case.processes)
            if run.wait(moment) is None:
                run.kill(sent)
                code = run.wait()
                # Unless it has ended by itself in the meantime.
                if sent != signal.SIGKILL or code != 0:
                    break
            run.end()
            shutil.rmtree(place)
        row |= {"moment": round(moment, 2), "code": code, "alone": run.end()}
        last = place / "checkpoints" / "last.ckpt"
        row["resumed"] = last.is_file()
        again = ["--ckpt_path", str(last)] if row["resumed"] else []
        run = Run([*options, "--run_dir", str(place), *again], log_file, case.processes)
        wrong = [] if run.wait() == 0 else [f"resuming ended with {run.code}"]
        wrong += [] if run.end() and row["alone"] else ["processes stayed"]
        expected = {-sent} if sent == signal.SIGKILL else {128 + sent, 0}
        wrong += [] if code in expected else [f"exit code {code}"]
        wrong = wrong or different(place, unbroken)
        yield row | {"wrong": wrong, "said": log_file.read_text(encoding="utf-8")[-1500:] if wrong else ""}
        shutil.rmtree(place)


def different(run: Path, other: Path) -> list[str]:
    """What two run directories do not have in common, by name."""
    found = []
    files = {path.relative_to(other) for path in other.rglob("*") if path.is_file() and path.suffix != ".png"}
    found += [f"{name} is missing" for name in sorted(files) if not (run / name).is_file()]
    for name in sorted(file for file in files if (run / file).is_file()):
        one, two = run / name, other / name
        if name.suffix == ".ckpt":
            same = _content(one) == _content(two)
        elif name.name == "results.json":
            same = all(_figures(one)[key] == _figures(two)[key] for key in ("folds", "mean", "std"))
        else:
            same = name.name == "config.yaml" or one.read_bytes() == two.read_bytes()
        found += [] if same else [str(name)]
    return found


def _content(path: Path) -> list[tuple[str, bytes]]:
    """What was learned, and what training goes on with."""
    state = torch.load(path, weights_only=True)
    parts = ("state_dict", "leaf_update", "optimizer_states", "lr_schedulers", "train_means", "global_step", "epoch")
    return list(_leaves({part: state.get(part) for part in parts}, ""))


def _leaves(value: Any, name: str) -> Iterator[tuple[str, bytes]]:
    if isinstance(value, dict | list | tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, f"{name}.{key}")
    else:
        # Bytes, so that NaN is equal to NaN.
        yield name, value.numpy().tobytes() if isinstance(value, torch.Tensor) else repr(value).encode()


def _figures(path: Path) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in json.loads(path.read_text(encoding="utf-8")).items()}


def tabulate(rows: list[Row]) -> list[list[str]]:
    """A line a case and signal, and one of all."""
    lines = []
    kinds = list(dict.fromkeys((row["case"], row["processes"], row["signal"]) for row in rows))
    for kind in [*kinds, None]:
        own = [row for row in rows if kind in (None, (row["case"], row["processes"], row["signal"]))]
        name = ["all", "", ""] if kind is None else [kind[0], str(kind[1]), kind[2]]
        resumed = sum(row["resumed"] for row in own)
        equal = sum(not row["wrong"] for row in own)
        lines.append([*name, *map(str, (len(own), resumed, len(own) - resumed, equal))])
    return lines


def parse() -> argparse.Namespace:
    """The command line."""
    parser = make_parser(__doc__, block="kills")
    parser.add_argument("--kills", type=int, default=50, help="SIGKILLs, over all cases (default: %(default)s)")
    parser.add_argument("--told", type=int, default=10, help="SIGTERMs, and SIGINTs (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: %(default)s)")
    parser.add_argument("--only", help="cases whose name begins so")
    parser.add_argument("--out", type=Path, default=Path("kills_cells"), help="store (default: %(default)s)")
    return parser.parse_args()


def main() -> None:
    """Kill, resume, compare and print the table."""
    options = parse()
    print(f"seed {options.seed}")
    # One thread a process, as the tests have: forks of a process with more would wait for the others for ever.
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    store = Store(options.out)
    # No TemporaryDirectory: each forked process would remove it when it ends.
    scratch = Path(tempfile.mkdtemp())
    try:
        known = cases(scratch)
        sent = [signal.SIGKILL] * options.kills + [signal.SIGTERM, signal.SIGINT] * options.told
        for number, (title, case) in enumerate(known.items()):
            own = list(islice(sent, number, None, len(known)))
            keys = [
                {"seed": options.seed, "case": title, "processes": case.processes, "signal": s.name, "number": n}
                for n, s in enumerate(own)
            ]
            todo = [(key, s) for key, s in zip(keys, own) if store.find(key) is None]
            if not todo or not title.startswith(options.only or ""):
                continue
            folder = scratch / str(number)
            folder.mkdir()
            rng = np.random.default_rng([options.seed, number])
            for (key, _), row in zip(todo, trials(case, [int(s) for _, s in todo], rng, folder)):
                store.cell(key, lambda row=row: row)  # type: ignore[misc]
                print(title, key["signal"], {part: value for part, value in row.items() if part != "said"}, flush=True)
    finally:
        shutil.rmtree(scratch)
    rows = tabulate([row for row in store.rows if row["seed"] == options.seed])
    show(f"Runs that were killed, seed {options.seed}", HEADER, rows)
    if options.page:
        write_block(options.page, "kills", markdown(HEADER, rows))


if __name__ == "__main__":
    launch(main)
