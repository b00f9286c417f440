"""Claims of the pages have evidence: ``docs/claims.csv`` links each to a test, a script, a result or a source.

A claim is a sentence of README.md or docs/ with a measured number, a promise or a comparison. Code, tables, and blocks
that scripts write are no sentences. CONTRIBUTING.md explains the kinds of evidence.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from fakes.pages import BLOCK, fences_of
from fakes.paths import ROOT, load_script

readability = load_script(ROOT / "docs" / "readability.py")

PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "changelog.md")]
COUNT = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve)"
UNIT = r"(?:seconds?|times|MB|GB|nats|points|years|degrees)"
NAME = re.compile(
    r"\b(?:Python|CC BY[-A-Z]*|ldl|YAML|[Vv]ersion|Sections?|Figures?|Tables?|arXiv|mord) \d[\d.]*|\d+\.\d+\.\d+"
)
"""Numbers that are names: of versions, licences and parts of papers."""
LEVEL = re.compile(r"\b(?:level of |central )?\d\d% (?:intervals?|sets?|of a predicted)\b|\blevel of \d\d%")
"""Levels, such as 90% intervals, are no measured numbers."""
CLAIM = re.compile(
    rf"\d+\.\d+|\b\d+ ?%|\b\d+,\d{{3}}|\b{COUNT} {UNIT}\b|\b{COUNT} of (?:the )?{COUNT}\b"
    rf"|\b(?:{COUNT}|half an?|an?) (?:minutes?|hours?)\b"
    r"|\b(?:never|always|exact|exactly|identical|guarantee\w*|halves|doubles|twice)\b"
    r"|\b(?:has|have|is|are) the (?:second )?(?:best|lowest|highest|fastest|smallest|largest)\b"
    r"|\b(?:better|worse|lower|higher|faster|slower|larger|smaller|narrower)\b(?=.* than\b)(?! than memory)"
    r"|\bahead of\b|\bfar behind\b|\bbehind the mean\b",
    re.IGNORECASE,
)
"""Measured numbers, absolute words and comparisons."""
DECIMAL = re.compile(r"\d+\.\d+")
ROW = re.compile(r"^\| (.*) \|$", re.MULTILINE)


class Claim(NamedTuple):
    """A line of ``docs/claims.csv``."""

    page: str
    words: str
    kind: str
    evidence: str


CLAIMS = [Claim(**row) for row in csv.DictReader((ROOT / "docs" / "claims.csv").read_text().splitlines())]


def statements_of(page: Path) -> list[str]:
    """The sentences and rows of tables that a person has written, without questions."""
    text = BLOCK.sub("", page.read_text())
    if page.parent.name != "papers":  # whose tables of variants benchmarks/papers.py has written
        text = ROW.sub(r"\n\1\n", text)
    return [sentence for sentence in readability.sentences(text) if not sentence.rstrip("*").endswith("?")]


def uncovered(sentence: str, claims: list[Claim]) -> list[str]:
    """The numbers and words of a sentence that make a claim and have no evidence."""
    for claim in claims:
        sentence = sentence.replace(claim.words, "")
    return CLAIM.findall(LEVEL.sub("", NAME.sub("", sentence)))


def has_evidence(claim: Claim) -> bool:
    """Whether the evidence of a claim exists. A ``derived`` claim is computed from the numbers of a block."""
    page = (ROOT / claim.page).read_text()
    place, _, name = claim.evidence.partition("::")
    text = (ROOT / place).read_text() if (ROOT / place).is_file() else ""
    blocks = dict(BLOCK.findall(text))
    match claim.kind:
        case "test":
            return place.startswith("tests/") and f"def {name}(" in text
        case "script":
            return place.endswith(".py") and bool(text)
        case "code":
            return bool(re.search(rf"\b{re.escape(name)}\b", text))
        case "block":
            return name in blocks and all(number in blocks[name] for number in DECIMAL.findall(claim.words))
        case "derived":
            return name in blocks
        case "command":
            return claim.evidence in page.replace("\\\n   ", "")
        case "output":
            return any(claim.evidence in fence for fence in fences_of(page, "text", "csv"))
        case "source":
            return claim.evidence in page + (ROOT / "docs" / "help" / "citing.md").read_text()
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_claim_has_evidence(page: Path) -> None:
    claims = [claim for claim in CLAIMS if claim.page == page.relative_to(ROOT).as_posix()]
    bare = [sentence for sentence in statements_of(page) if uncovered(sentence, claims)]
    assert bare == [], "add a line with the evidence to docs/claims.csv"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.page}: {claim.words[:40]}")
def test_evidence_exists(claim: Claim) -> None:
    matches = [sentence for sentence in statements_of(ROOT / claim.page) if claim.words in sentence]
    assert len(matches) == 1, "the words of a claim stand in one sentence of its page"
    assert has_evidence(claim), claim


CLAIMING = """The KL is 0.0561.
The gain is 12%.
It was trained on 2,673 nodules.
The run takes half a minute.
The fit is 3 times faster.
It holds in nine of ten rows.
A run never loses a step.
`Pool` has the lowest KL.
The forest is better than the network."""
PLAIN = """ldl needs Python 3.11 or newer.
Pass `--data.val_fraction 0.1` to hold out rows.
The columns hold 90% intervals.
The licence is CC BY 3.0, see Section 3.2."""


@pytest.mark.parametrize(
    ("sentence", "claims"),
    [*((line, True) for line in CLAIMING.splitlines()), *((line, False) for line in PLAIN.splitlines())],
)
def test_numbers_promises_and_comparisons_are_claims(sentence: str, claims: bool) -> None:
    assert bool(uncovered(readability.without_code(sentence), [])) == claims


def test_every_number_of_a_sentence_needs_evidence() -> None:
    sentence = "The KL is 0.0561 and falls by 12%."
    assert uncovered(sentence, [Claim("", "is 0.0561", "", "")])
    assert not uncovered(sentence, [Claim("", "is 0.0561", "", ""), Claim("", "falls by 12%", "", "")])


MISSING = """test tests/test_claims.py::test_of_no_name
test tests/no_such_file.py::test
script benchmarks/no_such_script.py
script README.md
code ldl/run/signals.py::NO_SUCH_NAME
block docs/results/tables.md::no_such_block
block docs/results/tables.md::tabular
command ldl no-such-command
output no such output
source No such paper 1900
belief docs/results/tables.md"""


@pytest.mark.parametrize("line", MISSING.splitlines())
def test_missing_evidence_is_found(line: str) -> None:
    kind, _, evidence = line.partition(" ")
    assert not has_evidence(Claim("README.md", "The KL is 9.9999.", kind, evidence))
