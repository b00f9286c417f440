"""LDLF, softmax and the constant predictor on the embedded digits: the README's first table.

    python benchmarks/digits.py [--seeds 3] [--out runs/benchmark_digits]

Protocol: fold 0 of ten folds by digit (720 test images of 180 digits; no digit is in two parts), the settings of
configs/runs/digits_*.yaml, median decoder; mean and standard deviation over the seeds 0, 1, ... of training.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import fmean, stdev

from ldl.cli import main

CONFIGS = Path(__file__).resolve().parent.parent / "configs" / "runs"
HEADS = {
    "LDLF": "ldlf",
    "LDLF, paper's settings": "ldlf_paper",
    "softmax (DLDL)": "softmax",
    "constant": "meanpredictor",
}
METRICS = {"KL": "kl", "MAE [degrees]": "mae", "within 5 degrees": "cs5"}


def run(head: str, seed: int, out: Path) -> dict[str, float]:
    """Test metrics of one run; one that is there already is read."""
    folder = out / f"{head}_{seed}"
    if not (folder / "results.json").is_file():
        options = ["--seed_everything", str(seed), "--run_dir", str(folder), "--wandb.mode", "disabled"]
        main(["-c", str(CONFIGS / f"digits_{head}.yaml"), *options])
    return json.loads((folder / "results.json").read_text())["mean"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark_digits"))
    options = parser.parse_args()
    rows = []
    for name, head in HEADS.items():
        runs = [run(head, seed, options.out) for seed in range(options.seeds)]
        cells = []
        for metric in METRICS.values():
            values = [result[metric] for result in runs]
            cells.append(f"{fmean(values):.3f} ± {stdev(values) if len(values) > 1 else 0:.3f}")
        rows.append(f"| {name} | {' | '.join(cells)} |")
    table = "\n".join([f"| head | {' | '.join(METRICS)} |", "|---|" + "---|" * len(METRICS), *rows])
    (options.out / "table.md").write_text(table + "\n")
    print(table)
