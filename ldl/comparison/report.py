"""What a comparison leaves behind: a table, a chart of ranks, everything as JSON."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

from ldl.comparison.figures import spread
from ldl.comparison.outcome import Outcome
from ldl.comparison.ranks import draw_ranks
from ldl.reports.files import markdown, write_json

HEADER = ["candidate", "KL", "p against the best", "rank", "seconds a fold"]


def table(outcome: Outcome) -> list[list[str]]:
    """Rows below :data:`HEADER`, the lowest mean KL first; candidates that failed come last."""
    ranks, tests = dict(zip(outcome.kl, outcome.ranks.mean(0))), outcome.p
    rows = []
    for name in sorted(outcome.kl, key=lambda name: float(outcome.kl[name].mean())):
        p = tests[name]
        test = "best" if name == outcome.best else "-" if math.isnan(p) else f"{p:.3f}" if p >= 0.001 else "< 0.001"
        seconds = f"{outcome.seconds(name):.2f}"
        rows.append([name, spread(outcome.kl[name], 4), test, f"{ranks[name]:.1f}", seconds])
    return rows + [[name, "failed", "", "", ""] for name in outcome.failed]


def write_report(folder: Path, outcome: Outcome, facts: dict[str, Any]) -> None:
    """Write ``comparison.json``, ``table.md`` and, of two candidates or more, ``ranks.png``.

    Args:
        folder: The run directory.
        outcome: What was measured.
        facts: What else ``comparison.json`` says first: data, protocol, choice.
    """
    write_json(folder / "comparison.json", {**facts, **_content(outcome)})
    lines = [_protocol(facts), "", markdown(HEADER, table(outcome)), "", f"{outcome.reason}.", "", *_chosen(outcome)]
    lines += [f"- {name} failed: {reason}" for name, reason in outcome.failed.items()]
    (folder / "table.md").write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    if len(outcome.kl) > 1:
        draw_ranks(list(outcome.kl), outcome.ranks, folder / "ranks.png", "folds")


def audit(leak: float | None) -> str:
    """What is known of leaks, in words."""
    if leak is None:
        return "identities unknown, so leaks cannot be audited"
    return f"{leak:.1%} of the test rows share a group with training"


def _protocol(facts: dict[str, Any]) -> str:
    leak = (
        "identities unknown"
        if facts["leak"] is None
        else f"{facts['leak']:.1%} of test rows share a group with training"
    )
    return (
        f"{facts['data']}, {facts['protocol']}, {facts['folds']} folds ({leak}). Mean ± standard deviation over the "
        f"folds; settings chosen {facts['choice']}; p of a two-sided paired t-test over the folds, corrected "
        "for the training rows that they share (Nadeau & Bengio 2003) and for the number of candidates (Holm)."
    )


def _content(outcome: Outcome) -> dict[str, Any]:
    tests = outcome.p
    candidates = [
        {
            "name": name,
            "error": outcome.failed.get(name),
            "kl": {"mean": float(kl.mean()), "std": float(kl.std(ddof=1))} if kl is not None and len(kl) > 1 else None,
            "p": tests[name] if kl is not None else None,
            "seconds": outcome.seconds(name) if kl is not None else None,
            "folds": [{key: cell.get(key) for key in ("fold", "setting", "measures")} for cell in cells],
        }
        for name, cells in outcome.cells.items()
        for kl in [outcome.kl.get(name)]
    ]
    return {
        "best": outcome.best,
        "recommended": outcome.recommended,
        "reason": outcome.reason,
        "candidates": candidates,
    }


def _chosen(outcome: Outcome) -> list[str]:
    """The settings of each candidate that had any to choose from, with the number of folds that took them."""
    lines = []
    for name in outcome.kl:
        count = Counter(json.dumps(cell["setting"]) for cell in outcome.cells[name] if cell["setting"])
        if count:
            lines.append(f"- {name}: " + "; ".join(f"{words(setting)} ({n})" for setting, n in count.most_common()))
    for name, cells in outcome.cells.items():
        reasons = {words(setting): why for cell in cells for setting, why in cell.get("failed_settings", {}).items()}
        lines += [f"- {name} failed with {setting}: {why}" for setting, why in reasons.items()]
    return ["Settings chosen, and in how many folds:", "", *lines, ""] if lines else []


def words(setting: str | dict[str, Any]) -> str:
    """A setting as on a command line, without dashes."""
    options = json.loads(setting) if isinstance(setting, str) else setting
    return ", ".join(f"{name} {value}" for name, value in options.items())
