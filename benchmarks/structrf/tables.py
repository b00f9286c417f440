"""StructRF on the sets of its paper, ten folds, beside the published figures (Chen et al. 2018, Tables 4 to 18).

    python benchmarks/structrf/tables.py [--sets SJAFFE Movie ...] [--trees 50 --depth 20 --sampling 0.8]

Folds are ``KFold(10, shuffle=True, random_state=0)``. Each of the six measures is *better* than the published mean,
*within* one published standard deviation of it, or *worse*. The ten Yeast sets are counted apart, and beside
the constant predictor, which passes most of them too: they hardly tell methods apart.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

from benchmarks.common.command import launch, make_parser
from benchmarks.common.folds import FOLDS, read_set, score_folds
from benchmarks.common.tables import write_block
from ldl.comparison.figures import direction, mean_and_deviation, spread
from ldl.heads import MeanPredictor, StructRF
from ldl.reports.files import markdown

MEASURES = ("chebyshev", "clark", "canberra", "kl", "cosine", "intersection")
PUBLISHED = {
    "Yeast_alpha": ".0133 .0008 .2079 .0134 .6745 .0461 .0054 .0007 .9947 .0007 .9628 .0025",
    "Yeast_cdc": ".0161 .0010 .2139 .0139 .6403 .0427 .0068 .0009 .9934 .0008 .9579 .0028",
    "Yeast_elu": ".0160 .0006 .1961 .0058 .5756 .0171 .0061 .0004 .9941 .0004 .9593 .0012",
    "Yeast_diau": ".0358 .0018 .1941 .0085 .4164 .0201 .0124 .0012 .9884 .0011 .9421 .0029",
    "Yeast_heat": ".0406 .0009 .1764 .0032 .3526 .0068 .0118 .0005 .9887 .0005 .9422 .0011",
    "Yeast_spo": ".0575 .0036 .2461 .0154 .5044 .0298 .0240 .0027 .9774 .0023 .9170 .0047",
    "Yeast_cold": ".0498 .0018 .1361 .0059 .2348 .0107 .0118 .0012 .9891 .0010 .9422 .0025",
    "Yeast_dtt": ".0350 .0014 .0953 .0038 .1636 .0056 .0059 .0007 .9944 .0005 .9597 .0012",
    "Yeast_spo5": ".0867 .0048 .1751 .0103 .269 .0154 .0268 .0023 .9763 .002 .9133 .0048",
    "Yeast_spoem": ".0830 .0042 .1240 .006 .1723 .0084 .0223 .0021 .9806 .0017 .9170 .0042",
    "Natural_Scene": ".2651 .0148 2.408 .0251 6.5025 .1081 .6142 .0292 .8026 .0121 .6045 .0131",
    "SJAFFE": ".1047 .0137 .3709 .0399 .7726 .092 .0544 .0117 .9483 .0117 .8690 .0165",
    "SBU_3DFE": ".1123 .0056 .3476 .0166 .7451 .0337 .0581 .0052 .9425 .0052 .8661 .0062",
    "Movie": ".1108 .005 .5042 .0235 .9629 .0452 .0921 .0066 .9393 .0042 .8421 .0062",
}
"""Mean and standard deviation of the six measures; Human_Gene is not among the sets at hand."""


def verdict(measure: str, mean: float, published: float, std: float) -> str:
    """``better``, ``within`` or ``worse``; the printed figures have four decimals."""
    behind = direction(measure) * (mean - published)
    return "better" if behind <= 0 else "within" if behind <= std else "worse"


def main() -> None:
    """Print one table a set, then the counts."""
    parser = make_parser(__doc__, block="structrf_tables")
    parser.add_argument("--sets", nargs="+", choices=PUBLISHED, default=list(PUBLISHED), help="(default: all)")
    parser.add_argument("--folds", type=int, default=FOLDS, help="how many of the ten (default: %(default)s)")
    parser.add_argument("--trees", type=int, default=50, help="(default: %(default)s)")
    parser.add_argument("--depth", type=int, default=20, help="(default: %(default)s)")
    parser.add_argument("--sampling", type=float, default=0.8, help="(default: %(default)s)")
    options = parser.parse_args()
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in ("Yeast", "Yeast, constant", "others")}
    rows = []
    for name in options.sets:
        features, target = read_set(name)
        head = StructRF(trees=options.trees, depth=options.depth, sampling=options.sampling, out_of_bag=False)
        ours = score_folds(head, features, target, MEASURES, options.folds)
        constant = score_folds(MeanPredictor(), features, target, MEASURES, options.folds).mean(0)
        print(f"\n{name}\n{'':14}{'StructRF':>20}{'published':>20}{'constant':>12}  verdict", flush=True)
        figures = np.array(PUBLISHED[name].split(), float).reshape(-1, 2)
        for number, (measure, (published, std)) in enumerate(zip(MEASURES, figures)):
            mean, deviation = mean_and_deviation(ours[:, number])
            word = verdict(measure, mean, published, std)
            counts["Yeast" if name.startswith("Yeast") else "others"][word] += 1
            if name.startswith("Yeast"):
                counts["Yeast, constant"][verdict(measure, constant[number], published, std)] += 1
            cells = f"{mean:12.4f} ±{deviation:6.4f}{published:12.4f} ±{std:6.4f}{constant[number]:12.4f}"
            print(f"{measure:14}{cells}  {word}", flush=True)
            theirs = [f"{published:.4f} ± {std:.4f}", f"{constant[number]:.4f}"]
            rows.append([name, measure, spread(ours[:, number], 4), *theirs, word])
    print()
    lines = []
    for kind, counter in counts.items():
        words = ", ".join(f"{counter[word]} {word}" for word in ("better", "within", "worse"))
        print(f"{kind + ':':18}{words} of {counter.total()}")
        lines.append(f"{kind}: {words} of {counter.total()}.")
    if options.page:
        table = markdown(["set", "measure", "StructRF", "published", "constant", "verdict"], rows)
        protocol = f"Mean ± standard deviation over {options.folds} folds."
        write_block(options.page, "structrf_tables", "\n\n".join([protocol, table, " ".join(lines)]))


if __name__ == "__main__":
    launch(main)
