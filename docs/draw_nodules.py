"""Draw ``pictures/nodules.png`` and ``pictures/disagreement.png`` from a run: ``python docs/draw_nodules.py RUN``.

RUN is the run directory of ``ldl -c nodules --stage crossval``. The first picture has the nodules with four ratings
whose predicted malignancy is at the 5%, 50% and 95% quantile, so the ratings had no part in the choice. The second
picture has nodules with four ratings, of at least three kinds: the upper row those with the nearest predictions by
Jensen-Shannon divergence, the lower row those with the farthest.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial.distance import jensenshannon

from ldl.charts.drawing import PREDICTED, TRUE, new_sheet, save
from ldl.validation.files import EXAMPLES

PICTURES = Path(__file__).parent / "pictures"
RATINGS = np.arange(1, 6)
EACH = 3


def read_predictions(run: Path) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return the nodules with four ratings, the shares of their ratings and the predictions, (n, 5) each."""
    rows = pd.concat([pd.read_csv(file) for file in sorted(run.glob("fold_*/predictions.csv"))])
    ratings = pd.read_csv(EXAMPLES / "readings.csv")["item"].value_counts()
    rows = rows[rows["name"].map(ratings) == 4]
    shares, predictions = (rows[[f"{kind}:{rating}" for rating in RATINGS]] for kind in ("target", "prediction"))
    return rows, shares.to_numpy(), predictions.to_numpy()


def draw(path: Path, names: list[str], shares: np.ndarray, predictions: np.ndarray) -> None:
    """Draw ratings as bars and predictions as lines, a panel for each nodule."""
    figure, axes = new_sheet(len(names), EACH, 3.2, 2.2)
    for axis, name, votes, prediction in zip(axes, names, shares, predictions):
        axis.bar(RATINGS, votes, width=0.7, color=TRUE, alpha=0.5, label="four radiologists")
        axis.plot(RATINGS, prediction, color=PREDICTED, marker="o", label="prediction")
        axis.set_title(name, fontsize=9)
        axis.set_ylim(0, 1)
        axis.set_xticks(RATINGS)
        axis.tick_params(labelsize=8)
    for axis in axes[-EACH:]:
        axis.set_xlabel("malignancy", fontsize=8)
    for axis in axes[::EACH]:
        axis.set_ylabel("share of ratings", fontsize=8)
    axes[0].legend(fontsize=8)
    print(save(figure, path))


def main(run: Path) -> None:
    rows, shares, predictions = read_predictions(run)
    names = rows["name"].to_numpy()
    order = np.argsort(rows["predicted_value"].to_numpy(), kind="stable")
    chosen = order[(np.array([0.05, 0.5, 0.95]) * (len(order) - 1)).round().astype(int)]
    draw(PICTURES / "nodules.png", list(names[chosen]), shares[chosen], predictions[chosen])
    mixed = np.flatnonzero((shares > 0).sum(1) >= 3)
    distance = jensenshannon(shares[mixed], predictions[mixed], axis=1)
    order = mixed[np.argsort(distance, kind="stable")]
    chosen = np.concatenate([order[:EACH], order[-EACH:]])
    print(f"{len(mixed)} of {len(rows)} nodules with four ratings have three or more kinds of ratings")
    draw(PICTURES / "disagreement.png", list(names[chosen]), shares[chosen], predictions[chosen])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
