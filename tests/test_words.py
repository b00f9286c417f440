"""Pages are written by the rules of CONTRIBUTING.md, as far as a script can decide."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from fakes.paths import ROOT, load_script

readability = load_script(ROOT / "docs" / "readability.py")


@pytest.mark.parametrize("page", readability.pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_reads_well(page: Path) -> None:
    assert not [str(fault) for fault in readability.faults(page.read_text())]


@pytest.mark.parametrize(
    ("prose", "rule", "why"),
    [
        ("The foil of this table is a mean.", "term", "baseline"),
        ("Its test part has ten rows.", "term", "test set"),
        ("Every person is tested once.", "term", "subjects"),
        ("The forest learns rows by heart.", "term", "memorises"),
        ("The run goes on\nfrom its checkpoint.", "term", "resumes"),
        ("Results are\ntold in a log.", "term", "reports"),
        ("If a file is missing, ldl says so.", "term", "reports"),
        ("A wrong column is refused.", "term", "rejects"),
        ("The file is looked at first.", "term", "checks"),
        ("The scheduler knows the length of the run.", "term", "no person"),
        ("Evidence is what a prediction uses.", "term", "X is Y"),
        ("[Intervals that hold](guides/some_page.md)", "term", "calibrated"),
        ("# A verb of the command line", "term", "subcommand"),
        ("> The KL is .305 here.", "term", "leading zero"),
        ("It is short. " * 4 + "This " + "word " * 39 + "ends.", "long", "at most 40"),
        (("The " + "word " * 20 + "ends. ") * 4, "mean", "at most 18"),
        ("A run (of one fold) ends (at once).", "parentheses", "2 in a sentence"),
        ("A run (that has nine or more words in its parenthesis) ends.", "parentheses", "words inside"),
        ("It has three parts: one; two; three.", "chain", "more than one"),
        ("- Item: one; two.\n- Item", "chain", "more than one"),
    ],
)
def test_every_rule_finds_its_fault(prose: str, rule: str, why: str) -> None:
    found = readability.faults(f"A page starts with a sentence.\n\n{prose}\n")
    assert [fault.rule for fault in found] == [rule]
    assert why in found[0].why


@pytest.mark.parametrize(
    "prose",
    [
        "```text\nthe foil is refused: a; b (c) (d) .5\n```",
        "| foil | is refused |\n|---|---|\n| .5 | a; b: c; d |",
        "Pass `--verb foil: a; b` to [the page](foils/at-hand.md).",
        "![The foil](pictures/foil.png)",
        "<!-- begin foil -->",
        "**Protocols**: five folds: the published lists.",
        "Measure the value of a cell, step by step, and check the settings: version 0.2.0, `.csv` or 0.5.",
        "It takes `features` (N, F) and `target` (N, C), of the same rows (Shen et al. 2017).",
        "See Fig. 3 of Shen et al. 2017, e.g. the left one.",
    ],
)
def test_code_tables_and_ordinary_words_pass(prose: str) -> None:
    assert not readability.faults(f"A page starts with a sentence.\n\n{prose}\n")


def test_docstrings_and_messages_use_the_same_terms() -> None:
    """Of all of ldl: the docstrings, help and messages that users read are its strings."""
    strings = {
        f"{path.relative_to(ROOT)}:{node.lineno}": readability.without_code(node.value)
        for path in sorted((ROOT / "ldl").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value
    }
    assert len(strings) > 4000
    assert not [f"{place}: {fault}" for place, text in strings.items() for fault in readability.terms(text)]


def test_sentences_end_at_full_stops_and_items() -> None:
    page = "# Heading\n\nOne sentence. Two\nsentences, e.g. this: `a. B`.\n\n- An item\n- Another item\n"
    assert [readability.length(sentence) for sentence in readability.sentences(page)] == [2, 5, 2, 2]
