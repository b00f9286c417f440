"""Pages of papers, written from what was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from benchmarks.common.claims import BEATEN, MISSED, REPEATED, Claim
from benchmarks.common.items import ABSENT, MISSING, NOTHING, Item, Measured, Paper, verdict
from ldl.reports.files import markdown

AT_ONCE = 3
"""Claims that the table of all items shows itself; where there are more, they have a table of their own."""

Figures = Mapping[str, Measured]


def overview(paper: Paper, figures: Figures) -> str:
    """One row an item: what it shows, published, ours, verdict."""
    rows = []
    for item in paper.items:
        measured = figures.get(item.name)
        judged = [claim for claim in measured.claims if claim.verdict] if measured else []
        theirs, ours = _inline(judged) if len(judged) <= AT_ONCE else ("", _counts(judged))
        ours = ours or item.absent
        rows.append([item.name, item.shows, theirs, ours, verdict(item, measured)])
    return markdown(["item", "shows", "published", "ours", "verdict"], rows)


def _inline(claims: Iterable[Claim]) -> tuple[str, str]:
    claims = list(claims)
    names = len(claims) > 1
    theirs = [f"{claim.name}: {claim.theirs}" if names else claim.theirs for claim in claims if claim.theirs]
    ours = [f"{claim.name}: {claim.measured}" if names else claim.measured for claim in claims]
    return "<br>".join(theirs), "<br>".join(ours)


def _counts(claims: Iterable[Claim]) -> str:
    counts = Counter(claim.verdict for claim in claims)
    words = ", ".join(f"{counts[word]} {word}" for word in (BEATEN, REPEATED, MISSED) if counts[word])
    return f"of {counts.total()} figures {words}"


def details(paper: Paper, figures: Figures) -> str:
    """One section an item that was measured, or could be: command, protocol, all claims, and why they differ."""
    return "\n\n".join(_section(paper, item, figures.get(item.name)) for item in paper.items if _has_section(item))


def _has_section(item: Item) -> bool:
    return item.measure is not None or bool(item.command)


def _section(paper: Paper, item: Item, measured: Measured | None) -> str:
    command = item.command or f'python benchmarks/papers.py {paper.name} --only "{item.name}"'
    parts = [f"### {item.name}", f"{item.shows}.", f"```\n{command}\n```"]
    if item.protocol:
        parts.append(item.protocol)
    if measured:
        rows = [
            [f"tried: {claim.name}" if claim.attempt else claim.name, claim.theirs, claim.measured, claim.verdict]
            for claim in measured.claims
        ]
        parts.append(markdown(["", "published", "ours", "verdict"], rows))
        parts.append(f"Processor time, without what items before it had measured: {_duration(measured.seconds)}.")
    if item.absent:
        parts.append(f"Not run: {item.absent}.")
    if item.why:
        parts.append(item.why)
    return "\n\n".join(parts)


def _duration(seconds: float) -> str:
    for size, unit in ((3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def index(papers: Iterable[tuple[Paper, Figures]]) -> str:
    """One row a paper: how many items, and how many of each verdict."""
    words = (REPEATED, BEATEN, MISSED, MISSING, ABSENT, NOTHING)
    rows, totals = [], Counter[str]()
    for paper, figures in papers:
        counts = Counter(verdict(item, figures.get(item.name)) for item in paper.items)
        totals += counts
        rows.append([f"[{paper.title}]({paper.name}.md)", *(str(counts[word]) for word in words), _share(counts)])
    rows.append(["all", *(str(totals[word]) for word in words), _share(totals)])
    return markdown(["paper", *words, "repeated or beaten, of those that can be run"], rows)


def _share(counts: Counter[str]) -> str:
    good = counts[REPEATED] + counts[BEATEN]
    could = good + counts[MISSED] + counts[MISSING]
    return f"{good} of {could}" + (f", {100 * good / could:.0f}%" if could else "")
