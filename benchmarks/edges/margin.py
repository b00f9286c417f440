"""What a margin beyond the frame, and less smoothing before non-maxima are suppressed, give to a trained network.

    python benchmarks/edges/margin.py runs/edge_val/softmax_enlarged_0 --page docs/results/edges.md

The network of a run of ``configs/runs/bsds/CONFIG.yaml`` is tested on ``val``, on images as they are, not mirrored.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.common.command import launch, make_parser
from benchmarks.common.runs import run_config, tested
from benchmarks.common.tables import show, write_block
from benchmarks.edges.sizes import ONE_SIZE, checkpoint
from ldl.reports.edges import FIGURES
from ldl.reports.files import markdown


def main() -> None:
    """Test what is missing, and print a row for every margin and radius."""
    parser = make_parser(__doc__, block="edges_margin")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--config", default="softmax_enlarged", help="(default: %(default)s)")
    parser.add_argument("--margins", nargs="+", type=int, default=[0, 32], help="pixels (default: %(default)s)")
    parser.add_argument("--radii", nargs="+", type=int, default=[4, 1], help="of smoothing (default: %(default)s)")
    options = parser.parse_args()
    rows = []
    for margin, radius in itertools.product(options.margins, options.radii):
        changed = [f"--model.backbone.margin={margin}", f"--data.smoothing={radius}"]
        figures = tested(
            options.run / f"margin_{margin}_{radius}",
            run_config("bsds", options.config),
            ["--stage=test", f"--ckpt_path={checkpoint(options.run)}", *ONE_SIZE, *changed],
        )
        rows.append([str(margin), str(radius), *(f"{figures[name]:.3f}" for name in FIGURES)])
    header = ["margin", "smoothing", *(name.upper() for name in FIGURES)]
    show("BSDS500, val", header, rows)
    if options.page:
        write_block(options.page, "edges_margin", markdown(header, rows))


if __name__ == "__main__":
    launch(main)
