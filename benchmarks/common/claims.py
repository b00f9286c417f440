"""What a paper claims beside what came out here, and how the two are judged."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from ldl.comparison.figures import mean_and_deviation, spread

BEATEN, REPEATED, MISSED, BESIDE = "beaten", "repeated", "not repeated", ""
"""Verdicts; the last is that of what stands beside the claims and is not judged."""


@dataclass(frozen=True)
class Number:
    """A printed figure, or a foil's, of which none is printed.

    Attributes:
        name: What it is the figure of.
        ours: One value a fold, seed or trial, as the item's protocol says.
        published: As printed.
        deviation: The printed one.
        lower: Whether lower is better.
        digits: That are shown.
        attempt: It was tried to come nearer, and is not judged.
        peer: It is of a method that the paper stands beside its own: shown with what is printed, and not judged.
    """

    name: str
    ours: tuple[float, ...]
    published: float | None = None
    deviation: float | None = None
    lower: bool = True
    digits: int = 4
    attempt: bool = False
    peer: bool = False

    @property
    def verdict(self) -> str:
        """Repeated: within one published deviation of the published mean; where none is printed, within one of ours;
        of a single value without either, equal to the digits shown. Beaten: better by more than that."""
        if self.published is None or self.attempt or self.peer:
            return BESIDE
        mean, own = mean_and_deviation(self.ours)
        within = self.deviation if self.deviation is not None else 0.0 if math.isnan(own) else own
        behind = (mean - self.published) * (1 if self.lower else -1)
        if abs(behind) <= max(within, 0.5 * 10**-self.digits):
            return REPEATED
        return BEATEN if behind < 0 else MISSED

    @property
    def theirs(self) -> str:
        """As printed."""
        if self.published is None:
            return ""
        shown = f"{self.published:.{self.digits}f}"
        return shown if self.deviation is None else f"{shown} ± {self.deviation:.{self.digits}f}"

    @property
    def measured(self) -> str:
        """Mean and deviation."""
        return spread(self.ours, self.digits)


@dataclass(frozen=True)
class Statement:
    """What a curve, a picture or a sentence says.

    Attributes:
        name: What is said, as the paper has it.
        holds: Whether it does here.
        measured: The figures that tell, in words.
        theirs: The figures that are printed, in words.
        attempt: It was tried to come nearer, and is not judged.
        exact: Its figures come out the same again; those of seconds do not.
    """

    name: str
    holds: bool
    measured: str
    theirs: str = ""
    attempt: bool = False
    exact: bool = True

    @property
    def verdict(self) -> str:
        """Repeated where it holds."""
        return BESIDE if self.attempt else REPEATED if self.holds else MISSED


Claim = Number | Statement


def judge(claims: Iterable[Claim]) -> str:
    """Of an item: not repeated where any of its claims is not; beaten where more of them are than only repeated."""
    verdicts = [claim.verdict for claim in claims if claim.verdict]
    if MISSED in verdicts or not verdicts:
        return MISSED
    return BEATEN if verdicts.count(BEATEN) > verdicts.count(REPEATED) else REPEATED


def shows_the_same(one: Claim, other: Claim) -> bool:
    """Whether a page would have the same words and digits; of a statement about seconds, whether it says the same."""
    if isinstance(one, Number) and isinstance(other, Number):
        return replace(one, ours=()) == replace(other, ours=()) and one.measured == other.measured
    if isinstance(one, Statement) and isinstance(other, Statement) and not one.exact:
        return (one.name, one.holds) == (other.name, other.holds)
    return one == other


def behind_the_digits(one: Claim, other: Claim) -> float:
    """The largest relative difference of two figures that show the same; 0 of statements."""
    if not (isinstance(one, Number) and isinstance(other, Number)):
        return 0.0
    if len(one.ours) != len(other.ours):
        return math.inf
    pairs = ((a, b) for a, b in zip(one.ours, other.ours) if a != b and not (math.isnan(a) and math.isnan(b)))
    return max((abs(a - b) / max(abs(a), abs(b)) for a, b in pairs), default=0.0)


def to_json(claim: Claim) -> dict[str, Any]:
    """What :func:`from_json` reads."""
    return asdict(claim)


def from_json(content: dict[str, Any]) -> Claim:
    """A claim that was written."""
    return Statement(**content) if "holds" in content else Number(**{**content, "ours": tuple(content["ours"])})
