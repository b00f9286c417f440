"""Splits by log-loss against the paper's clusters, on rows set aside inside training parts.

    python benchmarks/structrf/criterion.py [--sets SJAFFE M2B] [--trees 100] [--search exact random] [--page FILE.md]

Folds 0 and 1 of ``KFold(10, shuffle=True, random_state=0)``: their training parts are cut into five inner folds, of
which the first ``--inner`` are measured. Other folds test these rows. Both criteria grow on the same rows and
seed: a third of the features a node, all rows a tree, minimal leaf 2. The change is that of the mean KL divergence.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice
from pathlib import Path
from typing import get_args

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from sklearn.model_selection import KFold

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import FOLDS, numbered, read_set
from benchmarks.common.tables import write_block
from ldl.collective import Collective
from ldl.heads import StructRF
from ldl.heads.structrf import Criterion, Search
from ldl.metrics.functional import kl
from ldl.protocols import kfold
from ldl.reports.files import markdown

SETS = ("SJAFFE", "Natural_Scene", "SCUT_FBP", "M2B")


def pairs(name: str, search: Search, options: argparse.Namespace) -> np.ndarray:
    """Mean KL divergence of each inner fold by clusters and by log-loss, (2 * inner, 2)."""
    features, target = read_set(name)
    found = []
    for fold in (0, 1):
        rows = kfold(len(target), FOLDS, fold, 0).train
        inner = KFold(5, shuffle=True, random_state=0).split(rows)
        for learned, watched in islice(inner, options.inner):
            train, test, scores = torch.from_numpy(rows[learned]), torch.from_numpy(rows[watched]), []
            for criterion in get_args(Criterion):
                head = StructRF(
                    trees=options.trees, depth=40, features=0.33, min_leaf=2, sampling=1.0, replace=False,
                    criterion=criterion, search=search, out_of_bag=False, seed=0, threads=options.threads,
                )  # fmt: skip
                head.build(features.shape[1], numbered(target.shape[1]))
                head.fit(features[train], target[train], Collective())
                scores.append(float(kl(head(features[test]).double(), target[test].double()).mean()))
            found.append(scores)
    return np.array(found)


def main() -> None:
    """Measure, print, and write the block of a page."""
    parser = make_parser(__doc__, threads=2, block="structrf_criterion")
    parser.add_argument("--sets", nargs="+", default=list(SETS), help="(default: %(default)s)")
    parser.add_argument("--search", nargs="+", choices=("exact", "histogram", "random"), default=["exact", "random"])
    parser.add_argument("--trees", type=int, default=100, help="(default: %(default)s)")
    parser.add_argument("--inner", type=int, choices=range(1, 6), default=3, help="inner folds (default: %(default)s)")
    options = parser.parse_args()
    rows = []
    for name in options.sets:
        for search in options.search:
            scores = pairs(name, search, options)
            clusters, loss = scores.mean(0)
            lower = f"{(scores[:, 1] < scores[:, 0]).sum()} of {len(scores)}"
            rows.append((name, search, f"{clusters:.4f}", f"{loss:.4f}", f"{100 * (loss / clusters - 1):+.1f}%", lower))
            print(*rows[-1], flush=True)
    header = ("set", "search", "clusters", "log_loss", "change", "lower on")
    text = f"{options.trees} trees, mean KL on inner validation rows.\n\n{markdown(header, rows)}"
    print(text)
    if options.page:
        write_block(options.page, "structrf_criterion", text)


if __name__ == "__main__":
    launch(main)
