"""FG-NET, leave one person out, with fine-tuned models: several seeds, and their ensemble beside them.

    python benchmarks/faces/finetuned.py --heads softmax=runs/backbone/checkpoints/last.ckpt --out runs/fgnet

A head is NAME=CHECKPOINT: ``configs/runs/fgnet/finetuned_NAME.yaml`` begins from that checkpoint in every fold. A
seed's run lies in ``OUT/NAME_SEED`` and goes on where it was stopped. Figures are over all pictures of all folds
together, mean ± standard deviation over the seeds. An ensemble is the mean of its members' distributions, decoded as
theirs are; those of one head have begun from the same checkpoint. The last one has all heads and seeds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import numpy as np
import torch

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import crossvalidated, run_config
from benchmarks.common.tables import show, write_block
from ldl.comparison.figures import spread
from ldl.errors import LDLError
from ldl.labels import Decoder, LabelSpace
from ldl.metrics.rows import row_metrics
from ldl.reports.files import markdown

COLUMNS = {
    "MAE": "mae", "balanced MAE": "balanced_mae", "MAE of rare ages": "mae_few", "within 5 years": "cs5",
    "CRPS": "crps", "calibration error": "calibration_error", "90% interval covers": "coverage90",
}  # fmt: skip


def main() -> None:
    """Cross-validate what is missing, print the table."""
    parser = make_parser(__doc__, threads=1, block="age_finetuned")
    parser.add_argument("--heads", nargs="+", required=True, help="NAME=CHECKPOINT")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=Path, required=True, help="Folder of the runs.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes that share the folds.")
    parser.add_argument("--options", nargs="*", default=[], help="NAME=VALUE of the command line.")
    parser.add_argument("--block", default="age_finetuned")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    others = [f"--{option}" for option in options.options]
    rows: list[list[str]] = []
    runs: dict[Path, dict[str, Any]] = {}
    for given in options.heads:
        name, _, checkpoint = given.partition("=")
        if not checkpoint:
            raise LDLError(f"--heads {given!r} must be NAME=CHECKPOINT, such as softmax=RUN/checkpoints/last.ckpt")
        config = run_config("fgnet", f"finetuned_{name}")
        own = {
            folder: crossvalidated(folder, config, seed, options.jobs, "--model.start", checkpoint, *others)
            for seed in options.seeds
            for folder in [options.out / f"{name}_{seed}"]
        }
        rows.append(single(name, list(own.values())))
        rows += [together(f"{name}, ensemble of {len(own)}", own)] if len(own) > 1 else []
        runs |= own
    rows += [together(f"ensemble of all {len(runs)}", runs)] if len(options.heads) > 1 else []
    header = ["model", *COLUMNS, "minutes"]
    show(f"FG-NET, leave one person out, fine-tuned, seeds {options.seeds}", header, rows)
    if options.page:
        write_block(options.page, options.block, markdown(header, rows))


def single(name: str, results: list[dict[str, Any]]) -> list[str]:
    """The row of single models: mean ± standard deviation over the seeds, minutes of one."""
    seconds = np.mean([content["fit_seconds"] for content in results])
    cells = [spread(content["pooled"][measure] for content in results) or "-" for measure in COLUMNS.values()]
    return [name, *cells, f"{seconds / 60:.0f}"]


def together(name: str, runs: dict[Path, dict[str, Any]]) -> list[str]:
    """The row of an ensemble of runs, folders and their results; decoded as the first is, minutes of all."""
    first = next(iter(runs.values()))
    measured = ensemble([read_rows(folder) for folder in runs], first["decoder"])
    cells = [f"{measured[measure]:.3f}" if measure in measured else "-" for measure in COLUMNS.values()]
    return [name, *cells, f"{sum(content['fit_seconds'] for content in runs.values()) / 60:.0f}"]


def read_rows(folder: Path) -> dict[str, np.ndarray]:
    """What a run has tested, all folds together, in the order of the data set: ``prediction`` (n, C) and the rest."""
    parts = [np.load(path, allow_pickle=False) for path in sorted(folder.glob("fold_*/rows.npz"))]
    together = {name: np.concatenate([part[name] for part in parts]) for name in parts[0].files}
    order = np.argsort(together["index"], kind="stable")
    return {name: column[order] for name, column in together.items()}


def ensemble(runs: list[dict[str, np.ndarray]], decoder: Decoder = "median") -> dict[str, float]:
    """All measures of the mean distribution of several runs on the same pictures."""
    first = runs[0]
    if any(not np.array_equal(first["index"], other["index"]) for other in runs):
        raise LDLError("the runs have tested other pictures; give runs of the same data")
    labels = LabelSpace.ordinal(range(first["target"].shape[1]), "years")
    mean = np.mean([run["prediction"] for run in runs], axis=0)
    decoded = labels.decode(torch.from_numpy(mean), decoder).numpy()
    return row_metrics({**first, "prediction": mean, "predicted_value": decoded}, labels)


if __name__ == "__main__":
    launch(main)
