"""Names in Markdown, CSV and paths of files are text, whatever they hold."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest
from fakes.odd_names import ODD_NAMES

from ldl.reports.files import as_text, below, write_csv


@pytest.mark.parametrize("name", [*ODD_NAMES, "_a_", "1 < 2 & ~3~", "- x", "![i](j)"])
def test_markdown_shows_names_as_they_are_written(name: str) -> None:
    markdown = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table").enable("strikethrough")
    (_, shown, _) = markdown.parse(as_text(name))
    assert "".join(child.content for child in shown.children) == " ".join(name.split())
    assert all(child.type in ("text", "text_special") for child in shown.children)
    cells = markdown.parse(f"| a | b |\n|---|---|\n| {as_text(name)} | end |")
    assert [token.content for token in cells if token.type == "inline"][-1] == "end"


@pytest.mark.parametrize("name", ["/etc/x", "../../x", ""])
def test_files_of_names_stay_in_their_folder(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{below(name)}.png"
    assert path.resolve().parent.is_relative_to(tmp_path.resolve()) and below("a/b") == "a/b"


def test_file_names_that_are_no_text_are_written(tmp_path: Path) -> None:
    name = os.fsdecode(b"gr\xfcn.png")
    write_csv(tmp_path / "p.csv", ["name"], [[name], ["gr\u00fcn"]])
    assert (tmp_path / "p.csv").read_text(encoding="utf-8").split() == ["name", "gr\\udcfcn.png", "gr\u00fcn"]


FORMULAS = ["=1+1", "+a", "-a", "@SUM(A1)", "\t=1", "\r=1", "＝1"]  # noqa: RUF001


PLAIN = ["a=1", "-5", "+1.5e3", "", "'a", " a", "0", "label:=1"]


@pytest.mark.parametrize("quote", [False, True])
def test_formulas_are_quoted_on_request_and_numbers_never(quote: bool, tmp_path: Path) -> None:
    write_csv(tmp_path / "p.csv", ["=name", "number"], [[name, -0.5] for name in FORMULAS + PLAIN], quote)
    with (tmp_path / "p.csv").open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    mark = "'" if quote else ""
    assert header == [f"{mark}=name", "number"]
    assert rows == [[f"{mark}{name}", "-0.5"] for name in FORMULAS] + [[name, "-0.5"] for name in PLAIN]
