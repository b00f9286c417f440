"""What MSLP's labels do to an embedding: the first two dimensions beside plain locality preserving projection.

    python benchmarks/mslp/embedding.py [--set Natural_Scene --out mslp_embedding.png]

As Figure 7 of the talk (Peng et al. 2018): every training instance of fold 0, coloured by its strongest label. The
number above each panel is the share of instances whose nearest neighbour in these two dimensions has the same one.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import torch
from matplotlib.figure import Figure

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import inputs_of
from ldl.charts.drawing import save
from ldl.data import TabularLDL
from ldl.methods.embedding.locality import neighbour_graphs, preserve
from ldl.methods.embedding.neighbours import nearest


def embeddings(data: TabularLDL, positives: int = 20) -> dict[str, np.ndarray]:
    """Two dimensions of the training rows by each method, (N, 2)."""
    features, target = (part[data.split.train].double() for part in (inputs_of(data), data.columns["target"]))
    centred = (features - features.mean(0)).numpy()
    # Without labels all neighbours in features are drawn alike, and none is pushed.
    plain = neighbour_graphs(features, torch.zeros_like(target), positives, 1.0, 0, 1.0)
    multi = neighbour_graphs(features, target, positives, 2.0, positives // 2, 1.0)
    return {
        "locality preserving projection": centred @ preserve(centred, *plain, 1.0, 0.1, 2)[0],
        "MSLP": centred @ preserve(centred, *multi, 0.8, 0.1, 2)[0],
    }


def main() -> None:
    """Draw the chart and print the shares."""
    parser = make_parser(__doc__)
    parser.add_argument("--set", default="Natural_Scene", help="(default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path("mslp_embedding.png"), help="(default: %(default)s)")
    options = parser.parse_args()
    data = TabularLDL(path=f"ldl/{options.set}.mat", val_fraction=0)
    data.setup()
    strongest = data.columns["target"][data.split.train].argmax(1).numpy()
    figure = Figure(figsize=(11, 5), layout="constrained")
    for axis, (title, points) in zip(figure.subplots(1, 2), embeddings(data).items()):
        points = points / points.std(0)
        place = torch.from_numpy(points)
        neighbour = nearest(place, place, 1, exclude_self=True)[:, 0].numpy()
        share = (strongest[neighbour] == strongest).mean()
        print(f"{title}: {share:.3f}")
        for label, name in enumerate(data.labels.names):
            mine = strongest == label
            axis.scatter(*points[mine].T, s=6, alpha=0.6, label=f"label {name}", color=f"C{label % 10}")
        axis.set_title(f"{title}: {share:.0%} beside their like")
        axis.set_xlabel("first dimension")
        axis.set_ylabel("second dimension")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside right upper", markerscale=2)
    figure.suptitle(f"{options.set}, {len(strongest)} instances")
    print(save(figure, options.out))


if __name__ == "__main__":
    launch(main)
