"""Every table and figure of the five papers: measured, judged and written to docs/papers.

    python benchmarks/papers.py PAPER ... [--only "Table 15" ...] [--out runs/papers]
    python benchmarks/papers.py [PAPER ...] --quick
    python benchmarks/papers.py [PAPER ...] --check [--only "Table 15" ...] [--out ANOTHER_FOLDER]

Measures the items of the papers, each in a folder of its own; the same command goes on where it was stopped. What was
measured goes to docs/papers/figures/PAPER.json, and from there, and from nowhere else, to the page of the paper and the
index. --quick runs each item in a small form, within minutes in all, and writes no page: it proves the commands.
--check measures anew in an empty folder and compares with the figures of the pages to the last digit that they show;
where the floating-point numbers behind the digits differ, as on a processor of another kind, it says by how much.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch

from benchmarks.common.claims import behind_the_digits, shows_the_same
from benchmarks.common.command import launch, make_parser
from benchmarks.common.items import Item, Measured, Paper, Work, measure, read_figures, verdict, write_figures
from benchmarks.common.paper_pages import details, index, overview
from benchmarks.common.tables import write_block
from ldl.errors import LDLError
from ldl.running.quiet import silence

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ("ldlf", "structrf", "boosting", "mslp", "dsna")


def load(name: str) -> Paper:
    """The paper that ``benchmarks/NAME/paper.py`` has as ``PAPER``."""
    paper: Paper = importlib.import_module(f"benchmarks.{name}.paper").PAPER
    return paper


def main() -> None:
    """Measure what is missing, then write the pages."""
    parser = make_parser(__doc__, threads=1)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(PAPERS)} (default: all)")
    parser.add_argument("--only", nargs="+", metavar="ITEM", help="such as 'Table 15'; default all")
    parser.add_argument(
        "--out", type=Path, help="kept, and gone on with (default: runs/papers; a new one with --check)"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs" / "papers", help="pages (default: %(default)s)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="small forms; pages stay as they are")
    how.add_argument("--check", action="store_true", help="measure anew, and compare with the pages")
    how.add_argument("--report", action="store_true", help="measure nothing; write pages from their figures")
    options = parser.parse_args()
    if unknown := set(options.papers) - set(PAPERS):
        raise LDLError(f"no paper {', '.join(sorted(unknown))}: give some of {', '.join(PAPERS)}")
    writes = not (options.quick or options.check)
    torch.set_num_threads(options.threads)
    silence()
    papers = [load(name) for name in options.papers or PAPERS]
    if options.only:
        names = [item.name for paper in papers for item in paper.items]
        if unknown := set(options.only) - set(names):
            raise LDLError(f"no item {', '.join(sorted(unknown))}: give some of {', '.join(names)}")
    with tempfile.TemporaryDirectory() as empty:
        out = options.out or (Path("runs/papers") if writes else Path(empty))
        differ: list[str] = []
        for paper in papers:
            wanted = [item for item in paper.items if item.measure and (not options.only or item.name in options.only)]
            known = read_figures(figures_of(options.docs, paper))
            for item in [] if options.report else wanted:
                found = measured_in(out, paper, item, options.quick)
                if options.check:
                    differ += compare(paper, item, found, known.get(item.name))
                elif writes:
                    known[item.name] = found
                    write_figures(figures_of(options.docs, paper), in_order(paper, known))
            if writes:
                write_pages(options.docs, paper)
    if differ:
        print("\n".join(differ))
        raise LDLError(
            f"{len(differ)} claims are not as on the page, above: measure without --check to write what comes out now"
        )
    if writes:
        every = [load(name) for name in PAPERS]
        shown = index((paper, read_figures(figures_of(options.docs, paper))) for paper in every)
        write_block(options.docs / "index.md", "papers", shown)


def figures_of(docs: Path, paper: Paper) -> Path:
    """What the page of a paper is written from."""
    return docs / "figures" / f"{paper.name}.json"


def in_order(paper: Paper, figures: dict[str, Measured]) -> dict[str, Measured]:
    """Those of the items that the paper has, in its order."""
    return {item.name: figures[item.name] for item in paper.items if item.name in figures}


def measured_in(out: Path, paper: Paper, item: Item, quick: bool) -> Measured:
    """Measure an item in a folder of its own, and tell how long it took."""
    start = time.perf_counter()
    folder = out / paper.name / item.name.lower().replace(" ", "_").replace(",", "")
    found = measure(item, Work(folder, quick))
    told = "" if quick else f"  {verdict(item, found)}"
    print(f"{paper.name}, {item.name}: {time.perf_counter() - start:.0f} s{told}", flush=True)
    return found


def compare(paper: Paper, item: Item, found: Measured, known: Measured | None) -> list[str]:
    """Lines about the claims of an item that came out other than the page has them; says so where none did."""
    where = f"{paper.name}, {item.name}"
    if known is None:
        return [f"{where} is measured, and is not on the page"]
    ours, theirs = ({claim.name: claim for claim in each.claims} for each in (found, known))
    lines = [f"{where}: {name} is not on the page" for name in ours if name not in theirs]
    lines += [f"{where}: {name} is on the page alone" for name in theirs if name not in ours]
    pairs = [(ours[name], theirs[name]) for name in ours if name in theirs]
    lines += [
        f"{where}: {one.name}: {one.measured}, on the page {other.measured}"
        for one, other in pairs
        if not shows_the_same(one, other)
    ]
    if not lines:
        gap = max((behind_the_digits(*pair) for pair in pairs), default=0.0)
        rounding = f"; behind them figures differ by {gap:.0e} of them at most" if gap else ""
        print(f"{where}: {len(pairs)} claims equal to the last digit{rounding}", flush=True)
    return lines


def write_pages(docs: Path, paper: Paper) -> None:
    """The blocks of a paper's page."""
    figures = read_figures(figures_of(docs, paper))
    page = docs / f"{paper.name}.md"
    write_block(page, "items", overview(paper, figures))
    write_block(page, "figures", details(paper, figures))


if __name__ == "__main__":
    launch(main)
