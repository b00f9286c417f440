"""The summary of all benchmarks, docs/results/index.md, and tables of two other pages, from the pages of results.

    python benchmarks/summary.py

Every number is read from a block of a page or from benchmarks/figures; nothing is measured and no number is typed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common.script import launch, make_parser, write_block
from ldl.errors import LDLError
from ldl.reports.files import markdown

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FIGURES = Path(__file__).resolve().parent / "figures"
Table = list[list[str]]

PACKAGES = (
    *("random forest", "extra trees", "kNN", "XGBoost", "LightGBM", "CatBoost"),
    *("SA-BFGS (python-ldl)", "LDL-LRR (python-ldl)", "LDLF (python-ldl)"),
    *("LDL-DPA (python-ldl)", "Delta-LDL (python-ldl)"),
)
"""Rows of the block ``tabular`` that are other packages."""
MEAN = "mean baseline"
SETS = ("SBU_3DFE, persons", "Natural_Scene", "Movie", "SCUT_FBP", "M2B")
"""Columns of the summary. On SJAFFE, persons, the test does not separate the methods."""
LANDING = (MEAN, "random forest", "BoostedTrees", "LDLF", "Pool")
LANDING_SETS = ("SBU_3DFE, persons", "Movie")
"""Rows and columns of the table of README.md, which has room for 20 numbers."""


def tables_in(page: str, block: str) -> list[Table]:
    """Return the tables of a block of docs/PAGE.md, each with its header first, without bold and backticks."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    found = re.search(f"<!-- begin {re.escape(block)} -->\n(.*?)<!-- end {re.escape(block)} -->", text, re.DOTALL)
    if found is None:
        raise LDLError(f"docs/{page}.md has no block {block}")
    tables: list[Table] = [[]]
    for line in found[1].splitlines():
        if not line.startswith("|"):
            tables.append([])
        elif not line.startswith("|---"):
            tables[-1].append([cell.strip().replace("**", "").replace("`", "") for cell in line.strip("|").split("|")])
    return [table for table in tables if table]


def cell(table: Table, row: str, column: str) -> str:
    """Return a cell by the beginning of its row, with cells joined by ``, ``, and by the name of its column."""
    rows = [cells for cells in table[1:] if ", ".join(cells).startswith(row)]
    if not rows or column not in table[0]:
        raise LDLError(f"no row {row!r} with a column {column!r} in the table of {', '.join(table[0])}")
    return rows[0][table[0].index(column)]


def least(table: Table, names: list[str], column: str) -> str:
    """Return the name and the result of the row with the least mean; rows without a result have a dash or are empty."""
    shown = {name: cell(table, name + ",", column) for name in names}
    name = min((name for name in shown if shown[name] not in ("–", "")), key=lambda name: float(shown[name].split()[0]))
    return f"{shown[name]}, {name}"


def of_landing() -> str:
    pool = tables_in("results/tables", "pool")[0]
    rows = [[name, *(cell(pool, f"{name},", column) for column in LANDING_SETS)] for name in LANDING]
    return markdown(["KL divergence", *LANDING_SETS], rows)


def of_leakage() -> str:
    tabular = tables_in("results/tables", "tabular")[0]
    columns = ("SJAFFE, persons", "SJAFFE, shuffled", "SBU_3DFE, persons", "SBU_3DFE, shuffled")
    rows = [[name, *(cell(tabular, f"{name},", column) for column in columns)] for name in (MEAN, "AA-kNN", "StructRF")]
    return markdown(["KL divergence", *columns], rows)


def of_tables() -> str:
    pool, tabular = tables_in("results/tables", "pool")[0], tables_in("results/tables", "tabular")[0]
    ours = [row[0] for row in tabular[1:] if row[0] not in (*PACKAGES, MEAN)]
    rows = [
        [
            f"KL, {name}",
            cell(pool, "Pool,", name),
            least(tabular, ours, name),
            least(tabular, list(PACKAGES), name),
            cell(tabular, MEAN, name),
        ]
        for name in SETS
    ]
    return markdown(["", "`Pool`, one setting", "best head of ldl, tuned", "best other package, tuned", MEAN], rows)


def of_recommendations() -> str:
    table = tables_in("results/tables", "recommend")[0]
    names = ("draws", "of a table", "of the fresh rows", "lost, most")
    rows = [[row[0], *(cell(table, row[0], name) for name in names)] for row in table[1:]]
    header = ["nature", "tables", "within one standard error", "the same, by fresh rows", "largest loss of KL"]
    return markdown(header, rows)


def of_faces() -> str:
    claims = _claims("dsna", "Table I")
    ridge = f"{claims['age, ridge']['ours'][0]:.2f}, ridge"
    names = {"random forest": "RF", "`CostSensitiveForest`": "CS-RF", "`DSNA`": "CS-RF+DSNA"}
    rows = [
        [f"FG-NET, appearance features, {name}", *_ours_and_published(claims[f"age, {label}"], ridge)]
        for name, label in names.items()
    ]
    return markdown(["MAE, years", "here", "baseline", "published"], rows)


def of_edges() -> str:
    claims = _claims("dsna", "Table IV")
    names = {"structured edges, 8 trees": "SE", "4 trees, `DSNA` for half of the votes": "CS-SE+DSNA"}
    rows = [[name, *_ours_and_published(claims[f"{label}, ODS"])] for name, label in names.items()]
    return markdown(["ODS on 200 images of `test`", "here", "published"], rows)


def _ours_and_published(claim: dict[str, Any], *baseline: str) -> list[str]:
    published = claim["published"]
    return [f"{claim['ours'][0]:.2f}", *baseline, "" if published is None else f"{published:.2f}"]


def of_bags() -> str:
    table = tables_in("results/edges-and-bags", "musk")[0]
    rows = [
        [name, cell(table, "MILBoost", column), cell(table, "normalised set kernel", column), ""]
        for name, column in (("accuracy on musk1", "accuracy of bags"), ("AUC on musk1", "AUC"))
    ]
    return markdown(["", "`MILBoost`", "baseline: normalised set kernel", "published"], rows)


def of_digits() -> str:
    table = tables_in("quickstart", "digits")[0]
    column = "MAE in degrees"
    names = ("LDLF, default configuration", "Softmax (DLDL)", "MeanPredictor")
    return markdown(
        ["", "`LDLF`", "`Softmax`", MEAN],
        [["MAE in degrees, rotated digits", *(cell(table, name, column) for name in names)]],
    )


def of_intervals() -> str:
    table = tables_in("results/uncertainty", "coverage")[0]
    at = table[0].index("90%: predicted")
    rows = [[f"{row[0]}, `{row[1]}`", *row[at : at + 4]] for row in table[1:] if row[1] == "StructRF"]
    return markdown(["90% intervals", "predicted: coverage", "width", "calibrated: coverage", "width"], rows)


def of_speed() -> str:
    timed = tables_in("results/engineering", "speed")[0]
    pairs = (
        ("20 trees: `StructRF`, scikit-learn's random forest", "structrf, ldl,", "structrf, random forest"),
        ("20 rounds: `BoostedTrees`, one tree per label; XGBoost", "boosted, ldl, one tree", "boosted, XGBoost"),
        ("64 stumps: `MILBoost`, scikit-learn's AdaBoost", "milboost, ldl", "milboost, AdaBoost"),
    )
    rows = [[name, *(cell(timed, row, "processor seconds") for row in both)] for name, *both in pairs]
    return markdown(["seconds of the processor", "here", "baseline"], rows)


def of_papers() -> str:
    text = (DOCS / "papers" / "index.md").read_text(encoding="utf-8")
    lines = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| [")]
    rows = [[line[0].strip().replace("](", "](../papers/"), line[-1].strip()] for line in lines if len(line) > 5]
    total = next(line.strip("|").split("|")[-1].strip() for line in text.splitlines() if line.startswith("| all |"))
    return markdown(["paper", "tables and figures reproduced or exceeded"], [*rows, ["all", total]])


def _claims(paper: str, item: str) -> dict[str, dict[str, Any]]:
    found = json.loads((FIGURES / f"{paper}.json").read_text(encoding="utf-8"))
    return {claim["name"]: claim for claim in found[item]["claims"]}


BLOCKS = {
    "docs/results/index.md": {
        "summary_tables": of_tables,
        "summary_recommend": of_recommendations,
        "summary_faces": of_faces,
        "summary_edges": of_edges,
        "summary_bags": of_bags,
        "summary_digits": of_digits,
        "summary_intervals": of_intervals,
        "summary_speed": of_speed,
        "summary_papers": of_papers,
    },
    "docs/concepts/splits-and-leakage.md": {"leakage": of_leakage},
    "README.md": {"landing": of_landing},
}


def main() -> None:
    """Write the blocks of all pages."""
    make_parser(__doc__).parse_args()
    for page, blocks in BLOCKS.items():
        for name, write in blocks.items():
            write_block(ROOT / page, name, write())


if __name__ == "__main__":
    launch(main)
