"""The command that measures papers and writes their pages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import papers
from benchmarks.common.claims import Number, Statement
from benchmarks.common.items import Item, Paper, Work, read_figures
from benchmarks.common.paper_pages import details, index, overview
from ldl.errors import LDLError

DOCS = papers.ROOT / "docs" / "papers"


class Counted:
    """A measure of which the calls are counted."""

    def __init__(self) -> None:
        self.calls: list[bool] = []
        self.value = 0.25

    def __call__(self, work: Work) -> list[Number | Statement]:
        def count() -> dict[str, float]:
            self.calls.append(work.quick)
            return {"kl": self.value}

        kl = work.cell({"quick": work.quick}, count)["kl"]
        return [Number("KL", (kl, kl), 0.3, 0.01), Statement("it falls", True, "fast", exact=False)]


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Counted:
    measure = Counted()
    items = (
        Item(name="Figure 1", shows="an idea"),
        Item(name="Table 2", shows="KL", protocol="Two folds.", measure=measure, why="Other folds."),
        Item(name="Table 3", shows="ages", absent="MORPH is not at hand", command="python train.py -c morph"),
    )
    monkeypatch.setattr(papers, "load", lambda name: Paper(name, f"The paper {name}", items))
    monkeypatch.setattr(papers, "PAPERS", ("mslp",))
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "mslp.md").write_text(
        "<!-- begin items -->\n<!-- end items -->\n<!-- begin figures -->\n<!-- end figures -->\n"
    )
    (docs / "index.md").write_text("<!-- begin papers -->\n<!-- end papers -->\n")
    return measure


def test_pages_are_written_from_what_was_measured_and_nothing_is_measured_twice(counted, command, tmp_path):
    docs = tmp_path / "docs"
    assert "Table 2" in command(papers, "mslp", "--docs", docs, "--out", tmp_path / "out")
    command(papers, "mslp", "--docs", docs, "--out", tmp_path / "out")
    assert counted.calls == [False]
    page = (docs / "mslp.md").read_text()
    assert "| Table 2 | KL | KL: 0.3000 ± 0.0100 | KL: 0.2500 ± 0.0000<br>it falls: fast | repeated |" in page
    assert "| Figure 1 | an idea |  |  | nothing to measure |" in page
    assert "| Table 3 | ages |  | MORPH is not at hand | cannot be run here |" in page
    assert 'python benchmarks/papers.py mslp --only "Table 2"' in page and "Other folds." in page
    assert "python train.py -c morph" in page
    row = "| [The paper mslp](mslp.md) | 1 | 0 | 0 | 0 | 1 | 1 | 1 of 1, 100% |"
    assert row in (docs / "index.md").read_text()


def test_small_forms_write_no_page(counted, command, tmp_path):
    before = (tmp_path / "docs" / "mslp.md").read_text()
    command(papers, "--quick", "--docs", tmp_path / "docs")
    assert counted.calls == [True]
    assert (tmp_path / "docs" / "mslp.md").read_text() == before
    assert not (tmp_path / "docs" / "figures").exists()


def test_a_check_measures_anew_and_minds_every_digit(counted, command, tmp_path, capsys):
    docs = tmp_path / "docs"
    command(papers, "--docs", docs, "--out", tmp_path / "out")
    assert "Table 2: 2 claims equal to the last digit\n" in command(papers, "--check", "--docs", docs)
    counted.value *= 1 + 1e-12
    said = command(papers, "--check", "--docs", docs)
    assert "Table 2: 2 claims equal to the last digit; behind them figures differ by 1e-12 of them at most\n" in said
    counted.value += 1e-4
    with pytest.raises(LDLError, match="1 claims are not as on the page, above: measure without"):
        command(papers, "--check", "--docs", docs)
    assert "Table 2: KL: 0.2501 ± 0.0000, on the page 0.2500 ± 0.0000" in capsys.readouterr().out
    assert counted.calls == [False] * 4


def test_names_that_are_not_there_are_told(counted, command):
    with pytest.raises(LDLError, match="no paper other: give some of mslp"):
        command(papers, "other")
    with pytest.raises(LDLError, match="no item Table 9: give some of Figure 1, Table 2, Table 3"):
        command(papers, "--only", "Table 9")


@pytest.mark.parametrize("name", papers.PAPERS)
def test_no_figure_of_a_page_was_typed(name):
    paper = papers.load(name)
    figures = read_figures(papers.figures_of(DOCS, paper))
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert f"<!-- begin items -->\n{overview(paper, figures)}\n<!-- end items -->" in page
    assert f"<!-- begin figures -->\n{details(paper, figures)}\n<!-- end figures -->" in page
    assert list(figures) == [item.name for item in paper.items if item.name in figures]
    assert len({item.name for item in paper.items}) == len(paper.items)


def test_the_index_counts_what_the_pages_have():
    every = [(papers.load(name), read_figures(DOCS / "figures" / f"{name}.json")) for name in papers.PAPERS]
    assert f"<!-- begin papers -->\n{index(every)}\n<!-- end papers -->" in (DOCS / "index.md").read_text(
        encoding="utf-8"
    )


def test_figures_are_json(counted, command, tmp_path):
    command(papers, "--docs", tmp_path / "docs", "--out", tmp_path / "out")
    content = json.loads((tmp_path / "docs" / "figures" / "mslp.json").read_text())
    assert content["Table 2"]["claims"][0]["ours"] == [0.25, 0.25] and content["Table 2"]["seconds"] >= 0
