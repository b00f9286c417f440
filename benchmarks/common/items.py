"""Items (tables and figures) of a paper: what measures them, how results are judged, and how they are stored."""

from __future__ import annotations

import importlib
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from ldl.jobs.store import JOBS_FOLDER, Key, Result, Store
from ldl.reports.files import write_json
from ldl.search.statistics import mean_and_std, spread

EXCEEDED, REPRODUCED, MISSED, NOT_JUDGED = "exceeded", "reproduced", "not reproduced", ""
NOTHING, ABSENT, MISSING = "nothing to measure", "cannot be run here", "not measured"
UNDECIDED = "not decisive"
MEAN_BASELINE = "mean baseline"
"""Name of the method that predicts the mean of the training set, whose results are claims `mean baseline, METRIC`."""
BENCHMARKS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Number:
    """A result beside the printed number.

    Attributes:
        name: Its name on the page.
        ours: One value per fold, seed or trial.
        published: The printed value.
        deviation: The printed standard deviation.
        lower: Whether lower is better.
        digits: Decimals shown.
        baseline: Whether it is a baseline's result, which is shown beside the printed one and not judged.
    """

    name: str
    ours: tuple[float, ...]
    published: float | None = None
    deviation: float | None = None
    lower: bool = True
    digits: int = 4
    baseline: bool = False

    @property
    def verdict(self) -> str:
        """Reproduced: within one published deviation of the published mean. If no deviation is printed, within one of
        ours. A single value without either must be equal to the digits shown. Exceeded: better by more than that."""
        if self.published is None or self.baseline:
            return NOT_JUDGED
        mean, deviation = mean_and_std(self.ours)
        if self.deviation is not None:
            deviation = self.deviation
        within = 0.0 if math.isnan(deviation) else deviation
        behind = (mean - self.published) * (1 if self.lower else -1)
        if abs(behind) <= max(within, 0.5 * 10**-self.digits):
            return REPRODUCED
        return EXCEEDED if behind < 0 else MISSED

    @property
    def theirs(self) -> str:
        if self.published is None:
            return ""
        shown = f"{self.published:.{self.digits}f}"
        return shown if self.deviation is None else f"{shown} ± {self.deviation:.{self.digits}f}"

    @property
    def measured(self) -> str:
        return spread(self.ours, self.digits)


@dataclass(frozen=True)
class Statement:
    """A sentence of the paper, or what one of its curves or pictures shows.

    Attributes:
        name: The sentence.
        holds: Whether it holds here.
        measured: Our results, in words.
        theirs: The printed numbers, in words.
        exact: Whether a rerun gives the same results; false for times.
    """

    name: str
    holds: bool
    measured: str
    theirs: str = ""
    exact: bool = True

    @property
    def verdict(self) -> str:
        return REPRODUCED if self.holds else MISSED


Claim = Number | Statement


def ahead(
    name: str, ours: Sequence[float], other: Sequence[float], words: str, theirs: str = "", lower: bool = True
) -> Statement:
    """Judge whether one method is better than another on the same trials.

    The statement holds if the mean gain is more than twice its standard error over the trials, which a tie fails.
    """
    gains = [(b - a) * (1 if lower else -1) for a, b in zip(ours, other, strict=True)]
    mean, deviation = mean_and_std(gains)
    error = deviation / len(gains) ** 0.5
    return Statement(name, bool(mean > 2 * error), f"{words}; gain {mean:.4f}, standard error {error:.4f}", theirs)


def judge(claims: Iterable[Claim]) -> str:
    """Return the verdict of an item. One claim that is not reproduced decides; else the more frequent verdict does.

    An item is not decisive if the mean baseline would pass as well.
    """
    claims = list(claims)
    verdicts = [claim.verdict for claim in claims if claim.verdict]
    if MISSED in verdicts or not verdicts:
        return MISSED
    if _mean_passes(claims):
        return UNDECIDED
    return EXCEEDED if verdicts.count(EXCEEDED) > verdicts.count(REPRODUCED) else REPRODUCED


def _mean_passes(claims: list[Claim]) -> bool:
    """Return whether every judged claim would also hold with the result of the mean baseline."""
    numbers = {claim.name: claim for claim in claims if isinstance(claim, Number)}

    def passes(claim: Claim) -> bool:
        mean = numbers.get(f"{MEAN_BASELINE}, {claim.name.rpartition(', ')[2]}")
        if mean is None or not isinstance(claim, Number):
            return False
        return replace(claim, ours=mean.ours).verdict in (REPRODUCED, EXCEEDED)

    return all(passes(claim) for claim in claims if claim.verdict)


def shows_the_same(one: Claim, other: Claim) -> bool:
    """Return whether a page shows two claims alike. Of a statement about times only the verdict counts."""
    if isinstance(one, Statement) and not one.exact:
        return one.verdict == other.verdict
    return (one.theirs, one.measured, one.verdict) == (other.theirs, other.measured, other.verdict)


class Work:
    """The place where an item is measured.

    Attributes:
        folder: The item's own folder, for charts and stored results.
        quick: Whether to measure a small form, which shows that the command runs and nothing else.
    """

    def __init__(self, folder: Path, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self._store = Store(folder / JOBS_FOLDER)

    def result(self, key: Key, measure: Callable[[], Result]) -> Result:
        """Return the result stored under ``key``, or measure and store it, so that a stopped command resumes."""
        return self._store.get(key, measure)

    def shared(self, name: str) -> Work:
        """Return the place of results that several items of the paper use."""
        return Work(self.folder.parent / name, self.quick)


@dataclass(frozen=True)
class Item:
    """A table or figure, as ``paper.yaml`` describes it.

    Attributes:
        name: Its name, such as ``Table 15``.
        shows: What it shows.
        protocol: Folds, seeds, deviations, and how hyperparameters were chosen; no results.
        leaks: The protocol of the authors, where it is known and lets test rows influence training. The item is then
            measured under this protocol too. Its results have columns of their own and do not count.
        measure: Yields its claims; None if nothing is to be measured or the data are missing. With ``leaks`` it takes
            ``leaking=True`` and yields the same claims.
        absent: Why (a part of) it cannot be run here: what is missing, and the layout that the code expects.
        command: The command that measures it where ``papers.py`` does not.
        why: Why results differ from the paper; no results.
    """

    name: str
    shows: str
    protocol: str = ""
    leaks: str = ""
    measure: Callable[..., Iterable[Claim]] | None = None
    absent: str = ""
    command: str = ""
    why: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper: its name (its folder and page), its title and its items in the paper's order."""

    name: str
    title: str
    items: tuple[Item, ...]


def read_paper(name: str) -> Paper:
    """Read ``benchmarks/NAME/paper.yaml``.

    ``measure: MODULE.FUNCTION`` of an item names a function in the paper's folder and ``with`` its arguments. A text
    may be a list of parts, which are joined.
    """
    content = yaml.safe_load((BENCHMARKS / name / "paper.yaml").read_text(encoding="utf-8"))

    def item(entry: dict[str, Any]) -> Item:
        arguments = entry.pop("with", {})
        fields: dict[str, Any] = {
            key: " ".join(value) if isinstance(value, list) else value for key, value in entry.items()
        }
        if "measure" in fields:
            module, function = fields["measure"].split(".")
            measure = getattr(importlib.import_module(f"benchmarks.{name}.{module}"), function)
            fields["measure"] = partial(measure, **arguments)
        return Item(**fields)

    return Paper(name, content["title"], tuple(map(item, content["items"])))


def read_published(name: str) -> dict[str, Any]:
    """Read the numbers that a paper prints, ``benchmarks/NAME/published.yaml``."""
    content: dict[str, Any] = yaml.safe_load((BENCHMARKS / name / "published.yaml").read_text(encoding="utf-8"))
    return content


@dataclass(frozen=True)
class Measured:
    """Claims of an item, and processor seconds without shared results that other items had measured.

    ``leaking`` are the same claims under the leaking protocol of the authors, or none.
    """

    claims: tuple[Claim, ...]
    seconds: float
    leaking: tuple[Claim, ...] = ()


def measure(item: Item, work: Work) -> Measured:
    """Measure an item. Stored results are not measured again; their seconds count."""
    assert item.measure is not None
    spent = work.folder / "seconds.json"
    before = json.loads(spent.read_text(encoding="utf-8"))["seconds"] if spent.is_file() else 0.0
    start = time.process_time()
    try:
        claims = tuple(map(_as_stored, item.measure(work)))
        leaking = tuple(map(_as_stored, item.measure(work, leaking=True))) if item.leaks else ()
    finally:
        seconds = before + time.process_time() - start
        write_json(spent, {"seconds": seconds})
    return Measured(claims, seconds, leaking)


def _as_stored(claim: Claim) -> Claim:
    return from_json(json.loads(json.dumps(asdict(claim))))


def verdict(item: Item, measured: Measured | None) -> str:
    """Return the verdict of an item, or why it has none."""
    if item.measure is None:
        return ABSENT if item.absent else NOTHING
    return MISSING if measured is None else judge(measured.claims)


def from_json(content: dict[str, Any]) -> Claim:
    """Return a claim from its stored fields."""
    return Statement(**content) if "holds" in content else Number(**{**content, "ours": tuple(content["ours"])})


def write_results(path: Path, results: dict[str, Measured]) -> None:
    """Write the results from which pages are written."""
    content: dict[str, dict[str, Any]] = {}
    for name, one in results.items():
        content[name] = {"seconds": round(one.seconds, 1), "claims": [asdict(claim) for claim in one.claims]}
        if one.leaking:
            content[name]["leaking"] = [asdict(claim) for claim in one.leaking]
    write_json(path, content)


def read_results(path: Path) -> dict[str, Measured]:
    """Read the results of a paper; none if there is no file."""
    content = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {
        name: Measured(
            tuple(map(from_json, one["claims"])), one["seconds"], tuple(map(from_json, one.get("leaking", ())))
        )
        for name, one in content.items()
    }
