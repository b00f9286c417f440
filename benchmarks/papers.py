"""Every table and figure of the five papers: measured, judged and written to docs/papers.

    python benchmarks/papers.py PAPER ... [--only "Table 15" ...] [--out runs/papers]
    python benchmarks/papers.py [PAPER ...] --quick
    python benchmarks/papers.py [PAPER ...] --check [--only "Table 15" ...] [--out ANOTHER_FOLDER]

``benchmarks/PAPER/paper.yaml`` lists the items of a paper. Each is measured in a folder of its own, and the same
command resumes where it was stopped. Results are written to benchmarks/figures/PAPER.json, from which the pages are
written. --quick runs each item in a small form, within minutes, and writes no page: it shows that the commands run.
--check measures anew in an empty folder and compares with the digits that the pages show.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ldl  # noqa: F401  # before torch: it sets OMP_WAIT_POLICY, which torch reads once

# isort: split
import torch
from threadpoolctl import threadpool_limits

from benchmarks.common.items import (
    Claim,
    Item,
    Measured,
    Paper,
    Work,
    measure,
    read_paper,
    read_results,
    shows_the_same,
    verdict,
    write_results,
)
from benchmarks.common.pages import details, index, overview
from benchmarks.common.script import launch, make_parser, write_block
from ldl.errors import LDLError
from ldl.run.output import silence

DOCS = Path(__file__).resolve().parents[1] / "docs" / "papers"
FIGURES = Path(__file__).resolve().parent / "figures"
PAPERS = ("ldlf", "structrf", "boosting", "mslp", "dsna")


def main() -> None:
    """Measure what is missing, then write the pages."""
    parser = make_parser(__doc__, threads=1)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(PAPERS)} (default: all)")
    parser.add_argument("--only", nargs="+", metavar="ITEM", help="such as 'Table 15' (default: all)")
    parser.add_argument("--out", type=Path, help="folder of results (default: runs/papers; with --check a new one)")
    parser.add_argument("--docs", type=Path, default=DOCS, help="pages (default: %(default)s)")
    parser.add_argument("--figures", type=Path, default=FIGURES, help="results of the pages (default: %(default)s)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quick", action="store_true", help="small forms; write no page")
    how.add_argument("--check", action="store_true", help="measure anew, and compare with the pages")
    how.add_argument("--report", action="store_true", help="measure nothing; write pages from stored results")
    options = parser.parse_args()
    if unknown := set(options.papers) - set(PAPERS):
        raise LDLError(f"no paper {', '.join(sorted(unknown))}: give some of {', '.join(PAPERS)}")
    torch.set_num_threads(options.threads)
    threadpool_limits(options.threads)  # of numpy and scipy, whose sums otherwise depend on the cores of the machine
    silence()
    papers = [read_paper(name) for name in options.papers or PAPERS]
    names = [item.name for paper in papers for item in paper.items]
    if unknown := set(options.only or ()) - set(names):
        raise LDLError(f"no item {', '.join(sorted(unknown))}: give some of {', '.join(names)}")
    writes = not (options.quick or options.check)
    with tempfile.TemporaryDirectory() as empty:
        out = options.out or (Path("runs/papers") if writes else Path(empty))
        differ: list[str] = []
        for paper in papers:
            file = results_of(options.figures, paper)
            stored = read_results(file)
            for item in [] if options.report else paper.items:
                if item.measure is None or (options.only and item.name not in options.only):
                    continue
                measured = measured_in(out, paper, item, options.quick)
                if options.check:
                    differ += compare(f"{paper.name}, {item.name}", measured, stored.get(item.name))
                elif writes:
                    stored[item.name] = measured
                    write_results(file, {each.name: stored[each.name] for each in paper.items if each.name in stored})
            if writes:
                write_block(options.docs / f"{paper.name}.md", "items", overview(paper, stored))
                write_block(options.docs / f"{paper.name}.md", "figures", details(paper, stored))
    if differ:
        print("\n".join(differ))
        raise LDLError(f"{len(differ)} claims differ from the page, see above; measure without --check to rewrite it")
    if writes:
        every = [(paper, read_results(results_of(options.figures, paper))) for paper in map(read_paper, PAPERS)]
        write_block(options.docs / "index.md", "papers", index(every))


def results_of(figures: Path, paper: Paper) -> Path:
    """Return the file from which the page of a paper is written."""
    return figures / f"{paper.name}.json"


def measured_in(out: Path, paper: Paper, item: Item, quick: bool) -> Measured:
    """Measure an item in its own folder and print how long that took."""
    start = time.perf_counter()
    folder = out / paper.name / item.name.lower().replace(" ", "_").replace(",", "")
    measured = measure(item, Work(folder, quick))
    came = "" if quick else f"  {verdict(item, measured)}"
    print(f"{paper.name}, {item.name}: {time.perf_counter() - start:.0f} s{came}", flush=True)
    return measured


def compare(title: str, measured: Measured, stored: Measured | None) -> list[str]:
    """Return a line for each claim of an item that differs from the page; print a line if none does."""
    ours, theirs = _by_name(measured), _by_name(stored) if stored else {}
    lines = [f"{title}: {name} is not on the page" for name in ours if name not in theirs]
    lines += [f"{title}: {name} is only on the page" for name in theirs if name not in ours]
    lines += [
        f"{title}: {name}: {ours[name].measured}, on the page {theirs[name].measured}"
        for name in ours
        if name in theirs and not shows_the_same(ours[name], theirs[name])
    ]
    if not lines:
        print(f"{title}: {len(ours)} claims equal to the last digit", flush=True)
    return lines


def _by_name(measured: Measured) -> dict[str, Claim]:
    leaking = {f"{claim.name}, leaks": claim for claim in measured.leaking}
    return {claim.name: claim for claim in measured.claims} | leaking


if __name__ == "__main__":
    launch(main)
