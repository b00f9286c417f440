"""Heads on the built-in data set, rotated digits, over seeds.

    python benchmarks/digits.py [--seeds 3] [--page docs/quickstart.md]

Each run is a command of ``train.py``, whose ``results.json`` is kept: the same command resumes where it was stopped.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common.script import launch, make_parser, show, write_block
from ldl.errors import LDLError
from ldl.reports.files import markdown
from ldl.search.statistics import spread

TRAIN = Path(__file__).resolve().parents[1] / "train.py"
RUNS = {
    "`LDLF`, default configuration": "digits_ldlf",
    "`Softmax` (DLDL)": "digits_softmax",
    "`LDLF`, the paper's hyperparameters": "digits_ldlf_paper",
    "`MeanPredictor`": "digits_meanpredictor",
}
"""Configurations by their name in the table."""
COLUMNS = {"KL": "kl", "MAE in degrees": "mae", "within 5 degrees": "cs5"}


def main() -> None:
    """Run what is missing, and print the table."""
    parser = make_parser(__doc__, block="digits")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds, from 0 (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/digits"), help="(default: %(default)s)")
    options = parser.parse_args()
    rows = []
    for name, configuration in RUNS.items():
        found = [
            metrics_of(options.out / f"{configuration}_{seed}", configuration, seed) for seed in range(options.seeds)
        ]
        rows.append([name, *(spread([metrics[key] for metrics in found]) for key in COLUMNS.values())])
        print(*rows[-1], sep="  ", flush=True)
    header = ["head", *COLUMNS]
    show("rotated digits", header, rows)
    if options.page:
        write_block(
            options.page, "digits", f"Mean ± standard deviation over {options.seeds} seeds.\n\n{markdown(header, rows)}"
        )


def metrics_of(folder: Path, configuration: str, seed: int) -> dict[str, float]:
    """Return the metrics of a run, which is trained if its folder has no results."""
    if not (folder / "results.json").is_file():
        words = ["-c", configuration, "--seed_everything", str(seed), "--run_dir", str(folder)]
        quiet = ["--wandb.mode", "disabled", "--trainer.enable_progress_bar", "false"]
        done = subprocess.run([sys.executable, str(TRAIN), *words, *quiet], capture_output=True, text=True)
        if done.returncode:
            raise LDLError(f"the run of {configuration} with seed {seed} failed: {done.stderr.strip()[-300:]}")
    return json.loads((folder / "results.json").read_text(encoding="utf-8"))["mean"]


if __name__ == "__main__":
    launch(main)
