"""Measure how readable the pages are: ``python docs/readability.py [PAGE ...]`` prints a line per page and its faults.

The rules are those of CONTRIBUTING.md. They look at prose alone: no code, tables, pictures or addresses of links.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MEAN, LONGEST, IN_PARENTHESES = 18, 40, 8  # words: of a page's sentences on average, of a sentence, of a parenthesis

#: Words of this project's past -> the words of the field. A pattern hits the forbidden sense and no other.
TERMS = {
    r"\bfoils?\b": "baseline",
    r"\bpeers?\b": "competing packages",
    r"\bbeaten\b": "exceeded",
    r"\b(?:training|validation|test) parts?\b": "training set, validation set, test set",
    r"\bpersons? (?:(?:is|are) )?tested\b|\bby persons?\b": "subjects, groups",
    r"\border audit\b": "row-order check",
    r"\bdecoded values?\b": "point prediction",
    r"\bembedded (?:data )?sets?\b": "built-in data set",
    r"\bkept (?:as is|views?)\b": "frozen, cached augmentations",
    r"\bby heart\b": "overfits, memorises",
    r"\bknow(?:s|n)? again\b": "recognises",
    r"\brandom cuts?\b": "random thresholds",
    r"\b(?:a|one) tree a label\b": "one tree per label",
    r"\b(?:round|step) anew\b": "refit",
    r"\bring of samples\b|\bsaved ring\b": "replay buffer",
    r"\bintervals? that holds?\b": "calibrated prediction intervals",
    r"\bsoft maximum\b": "MIL pooling",
    r"\bforetells?\b|\bforetold\b": "predicts",
    r"\b(?:people|persons|those) who (?:draw|drew|vote|voted|rate|rated)\b": "annotators",
    r"\btold to end\b": "graceful shutdown",
    r"\bgo(?:es)? on (?:exactly|where|from)\b": "resumes",
    r"\bverbs?\b": "subcommand",
    r"\bat hand\b": "available",
    r"\b(?:alone_in|nothing_left)\b": "run_dir_lock, cleanup_on_error",
    r"\b(?:is|are|was|were) told\b": "ldl reports ...",
    r"\b(?:says?|said) so\b": "ldl reports ...",
    r"\b(?:is|are|was|were) refused\b": "ldl raises ..., ldl rejects ...",
    r"\b(?:is|are|was|were) looked at\b": "ldl evaluates ..., ldl checks ...",
    r"\b(?:page|file|head|model|run|line|table|curve|scheduler)s? (?:says?|knows?|minds?|wants?|asks?|speaks?)\b": (
        "no person: reports, has, needs"
    ),
    r"\b(?<!that )(?<!this )(?:is|are) what\b": "a definition: X is Y",
    r"\bnobody knows\b|\bworth more\b|\ba riddle\b": "a plain limit",
    r"\bturned (?:digits?|pictures?|images?)\b": "rotated images",
    r"(?<![\w.\\/*\[])\.\d": "a leading zero: 0.305",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): better for pattern, better in TERMS.items()}
SHORTENED = re.compile(r"\b(e\.g|i\.e|et al|vs|cf|Fig|Sec|Eq|Tab|No|approx)\.", re.IGNORECASE)
SENTENCE_END = re.compile(r"(?<=[.!?])[\")*_]*\s+(?=[\"(*_\[]*[A-Z0-9`])")
SHAPE = re.compile(r"(?!CODE)[A-Z\d][A-Z\d., ]*")  # of an array, or a number or a year
LEAD = re.compile(r"^(?:\*\*[^*]+\*\*|CODE)(?: \([^()]*\))?:")  # "**Protocols**: ..." starts an item
ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")


@dataclass(frozen=True)
class Fault:
    rule: str  # mean, long, term, parentheses or chain
    why: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.why}: {self.text[:160]}"


def pages() -> list[Path]:
    """README files, CONTRIBUTING.md, CHANGELOG.md and every page of docs."""
    named = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "plugins/README.md", "benchmarks/README.md")
    return [*(ROOT / page for page in named), *sorted((ROOT / "docs").rglob("*.md"))]


def without_code(text: str) -> str:
    """Replace inline code by the word ``CODE``."""
    return re.sub(r"(`+)(?!`).+?(?<!`)\1(?!`)", "CODE", text, flags=re.DOTALL)


def paragraphs(text: str) -> list[str]:
    """Paragraphs, headings and items of lists of a Markdown page, each a line, inline code as the word ``CODE``."""
    text = re.sub(r"\A---\n.*?^---\n", "", text, flags=re.MULTILINE | re.DOTALL)  # options of the site
    text = re.sub(r"^[ \t]*```.*?^[ \t]*```[ \t]*$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(?:\s*\|.*|:::.*(?:\n(?: {4}.*)?)*|--8<--.*|!!!.*)$", "", text, flags=re.MULTILINE)
    text = without_code(text)
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|\{[#.:][^}]*\}|<[^<>\n]+>", "", text)
    text = re.sub(r"\[([^\]]*)\]\([^)\s]+\)", r"\1", text)
    text = re.sub(r"https?://\S+", "CODE", text)
    found: list[str] = []
    fresh = True
    for line in text.splitlines():
        if not line.strip():
            fresh = True
        elif fresh or ITEM.match(line) or line.startswith("#"):
            found.append(ITEM.sub("", line).strip())
            fresh = line.startswith("#")
        else:
            found[-1] += " " + line.strip()
    return found


def sentences(text: str) -> list[str]:
    """The sentences of a page's prose, without its headings."""
    plain = (SHORTENED.sub(r"\1", paragraph) for paragraph in paragraphs(text) if not paragraph.startswith("#"))
    return [sentence for paragraph in plain for sentence in SENTENCE_END.split(paragraph) if length(sentence)]


def length(sentence: str) -> int:
    return len(re.findall(r"[^\W_][\w.,'’/%+-]*", sentence))


def mean_length(text: str) -> float:
    lengths = [length(sentence) for sentence in sentences(text)]
    return sum(lengths) / max(1, len(lengths))


def terms(text: str) -> list[Fault]:
    """Words of the past in any line of prose: of a page, a docstring or a message."""
    hits = ((pattern.search(text), better) for pattern, better in PATTERNS.items())
    return [Fault("term", f"{hit[0]!r}, better: {better}", text) for hit, better in hits if hit]


def faults(text: str) -> list[Fault]:
    """All that a page has to mend."""
    found = [fault for paragraph in paragraphs(text) for fault in terms(paragraph)]
    if (mean := mean_length(text)) > MEAN:
        found.append(Fault("mean", f"{mean:.1f} words a sentence, at most {MEAN}", ""))
    for sentence in sentences(text):
        if (words := length(sentence)) > LONGEST:
            found.append(Fault("long", f"{words} words, at most {LONGEST}", sentence))
        inside = [words for words in re.findall(r"(?<!\w)\(([^()]*)\)", sentence) if not SHAPE.fullmatch(words)]
        if len(inside) > 1:
            found.append(Fault("parentheses", f"{len(inside)} in a sentence", sentence))
        found += [
            Fault("parentheses", f"{length(words)} words inside, at most {IN_PARENTHESES}", sentence)
            for words in inside
            if length(words) > IN_PARENTHESES
        ]
        if len(re.findall(r"[;:](?=\s)", LEAD.sub("", sentence))) > 1:
            found.append(Fault("chain", "more than one colon or semicolon", sentence))
    return found


def main() -> None:
    for page in [Path(given).resolve() for given in sys.argv[1:]] or pages():
        text = page.read_text(encoding="utf-8")
        found = faults(text)
        counts = f"{len(sentences(text))} sentences, {mean_length(text):.1f} words each, {len(found)} faults"
        print(f"{page.relative_to(ROOT)}: {counts}")
        print(*(f"    {fault}" for fault in found), sep="\n", end="\n" if found else "")


if __name__ == "__main__":
    main()
