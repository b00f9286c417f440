"""Pages of papers, written from stored results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from benchmarks.common.items import (
    ABSENT,
    EXCEEDED,
    MISSED,
    MISSING,
    NOTHING,
    REPRODUCED,
    UNDECIDED,
    Claim,
    Item,
    Measured,
    Paper,
    verdict,
)
from ldl.reports.files import markdown

AT_ONCE = 3
"""Most claims that the table of all items shows itself."""

Results = Mapping[str, Measured]


def overview(paper: Paper, results: Results) -> str:
    """Return a table with one row per item."""
    rows = []
    for item in paper.items:
        measured = results.get(item.name)
        judged = [claim for claim in measured.claims if claim.verdict] if measured else []
        theirs, ours = _inline(judged) if len(judged) <= AT_ONCE else ("", _counts(judged))
        rows.append([item.name, item.shows, theirs, ours or item.absent, verdict(item, measured)])
    return markdown(["item", "shows", "published", "ours", "verdict"], rows)


def _inline(claims: list[Claim]) -> tuple[str, str]:
    named = [f"{claim.name}: " if len(claims) > 1 else "" for claim in claims]
    theirs = [name + claim.theirs for name, claim in zip(named, claims) if claim.theirs]
    return "<br>".join(theirs), "<br>".join(name + claim.measured for name, claim in zip(named, claims))


def _counts(claims: list[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    words = ", ".join(f"{counts[word]} {word}" for word in (EXCEEDED, REPRODUCED, MISSED) if counts[word])
    return f"of {counts.total()} results {words}"


def details(paper: Paper, results: Results) -> str:
    """Return a collapsed section for each item with a command: protocol, all claims, and why they differ."""
    return "\n\n".join(
        _section(paper, item, results.get(item.name)) for item in paper.items if item.measure or item.command
    )


def _section(paper: Paper, item: Item, measured: Measured | None) -> str:
    command = item.command or f'python benchmarks/papers.py {paper.name} --only "{item.name}"'
    opening = f'<details id="{_anchor(item.name)}" markdown>\n<summary>{item.name}</summary>'
    parts = [opening, f"{item.shows}.", f"```\n{command}\n```", item.protocol]
    if measured:
        rows = [[claim.name, claim.theirs, claim.measured, claim.verdict] for claim in measured.claims]
        header = ["", "published", "ours", "verdict"]
        if measured.leaking:
            header += ["ours, *leaks*", "verdict, *leaks*"]
            rows = [[*row, claim.measured, claim.verdict] for row, claim in zip(rows, measured.leaking, strict=True)]
        parts += [f"*Leaks*: {item.leaks}" if measured.leaking else "", markdown(header, rows)]
        parts.append(f"Processor time, without shared results of items above: {_duration(measured.seconds)}.")
    parts += [f"**Not run**: {item.absent}." if item.absent else "", item.why, "</details>"]
    return "\n\n".join(part for part in parts if part)


def _anchor(name: str) -> str:
    """Return the anchor that MkDocs would give to a heading of this name."""
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", name.lower()).strip())


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def index(papers: Iterable[tuple[Paper, Results]]) -> str:
    """Return a table with one row per paper: how many items have each verdict."""
    words = (REPRODUCED, EXCEEDED, UNDECIDED, MISSED, MISSING, ABSENT, NOTHING)
    rows, totals = [], Counter[str]()
    for paper, results in papers:
        counts = Counter(verdict(item, results.get(item.name)) for item in paper.items)
        totals += counts
        rows.append([f"[{paper.title}]({paper.name}.md)", *(str(counts[word]) for word in words), _share(counts)])
    rows.append(["all", *(str(totals[word]) for word in words), _share(totals)])
    return markdown(["paper", *words, "reproduced or exceeded, of those that can be run"], rows)


def _share(counts: Counter[str]) -> str:
    good = counts[REPRODUCED] + counts[EXCEEDED]
    could = good + counts[UNDECIDED] + counts[MISSED] + counts[MISSING]
    return f"{good} of {could}" + (f", {100 * good / could:.0f}%" if could else "")
