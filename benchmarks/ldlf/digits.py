"""LDLF, softmax and the constant predictor on the embedded digits.

    python benchmarks/ldlf/digits.py [--seeds 3] [--out runs/benchmark_digits] [--page docs/results/PAGE.md]

Protocol: fold 0 of ten folds by digit (720 test images of 180 digits; no digit is in two parts), the settings of
configs/default.yaml and configs/runs/digits, median decoder; mean and standard deviation over the seeds 0, 1, ... of
training.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import CONFIGS, run_config, tested
from benchmarks.common.tables import write_block
from ldl.comparison.figures import spread
from ldl.reports.files import markdown

HEADS = {
    "LDLF": ("ldlf", CONFIGS / "default.yaml"),
    "LDLF, paper's settings": ("ldlf_paper", run_config("digits", "ldlf_paper")),
    "softmax (DLDL)": ("softmax", run_config("digits", "softmax")),
    "constant": ("meanpredictor", run_config("digits", "meanpredictor")),
}
METRICS = {"KL": "kl", "MAE [degrees]": "mae", "within 5 degrees": "cs5"}


def main() -> None:
    """Train and test what is missing, and print the table."""
    parser = make_parser(__doc__, block="digits")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/benchmark_digits"))
    options = parser.parse_args()
    rows = []
    for name, (head, config) in HEADS.items():
        runs = [
            tested(options.out / f"{head}_{seed}", config, ["--seed_everything", str(seed), "--wandb.mode", "disabled"])
            for seed in range(options.seeds)
        ]
        rows.append([name, *(spread(result[metric] for result in runs) for metric in METRICS.values())])
    table = markdown(["head", *METRICS], rows)
    (options.out / "table.md").write_text(table + "\n", encoding="utf-8")
    print(table)
    if options.page:
        write_block(options.page, "digits", f"Mean ± standard deviation over {options.seeds} seeds.\n\n{table}")


if __name__ == "__main__":
    launch(main)
