"""Names are text for every small language: mathtext, markup of rich, Markdown, HTML, CSV, the codec of a terminal."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.text import Text

from ldl import charts
from ldl.charts.drawing import new_figure, save
from ldl.command import main
from ldl.labels import LabelSpace
from ldl.reports.files import as_text, below, write_csv
from ldl.run.output import ignore_broken_pipes

NAMES = ["a$b$c_1", "x_{^$\\frac$", "[bold]rot[/] :x:", '=1+1, "two" %s {0}', "gr\u00fcn \u0416", "<b>|x|</b>\n# h"]
RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("odd $_{ [b]") / "a$b_{$ [red]*.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["f0", "f1", *(f"label:{name}" for name in NAMES)])
        writer.writerows([*RNG.normal(size=2), *RNG.dirichlet(np.ones(len(NAMES)))] for _ in range(30))
    return path


def options(table: Path, folder: Path) -> list[str]:
    return [
        "--data=TabularLDL", f"--data.path={table}", "--model.backbone=null", "--model.head=MeanPredictor",
        "--trainer.enable_progress_bar=false", "--wandb.mode=disabled", "--run_dir", str(folder),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii"])
def test_a_run_whose_names_no_small_language_may_read(encoding: str, table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run $_{ [b]* %s {x}"
    plain = {"PYTHONIOENCODING": encoding, "LC_ALL": "C", "PYTHONUTF8": "0"}
    command = [sys.executable, "-m", "ldl", *options(table, folder)]
    done = subprocess.run(command, env=os.environ | plain, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode(encoding)
    assert done.returncode == 0 and "is left out" not in said and "Traceback" not in said, said
    assert "a$b_{$ [red]*" in said
    assert json.loads((folder / "results.json").read_text())["title"] == "a$b_{$ [red]*"
    with (folder / "predictions.csv").open(newline="", encoding="utf-8") as file:
        header = next(csv.reader(file))
    assert [name.removeprefix("target:") for name in header if name.startswith("target:")] == NAMES
    assert (folder / "charts" / "distributions.png").is_file()


def test_charts_show_names_as_they_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels, rows = LabelSpace.nominal(NAMES), RNG.dirichlet(np.ones(len(NAMES)), 2)
    drawn: list[Figure] = []
    write = Figure.savefig

    def keep(figure: Figure, *args: Any, **options: Any) -> None:
        drawn.append(figure)
        write(figure, *args, **options)

    monkeypatch.setattr(Figure, "savefig", keep)
    with rc_context({"text.usetex": True, "axes.formatter.use_mathtext": True}):
        charts.distributions(tmp_path / "d.png", rows, rows, labels, NAMES[:2])
        charts.leaves(tmp_path / "l.png", rows, labels, np.ones(2))
        charts.photograph(tmp_path / "p.png", np.zeros((9, 9, 3), np.uint8), np.ones((2, 4)), rows, NAMES[:2], labels)
        charts.maps(tmp_path / "m.png", [(NAMES[1], [None, np.zeros((2, 2))])], NAMES[:2], labels)
        charts.answer(tmp_path / "a.png", rows[0], labels)
    assert len(drawn) == 5
    shown = [
        text
        for figure in drawn
        for text in figure.findobj(Text)
        if "$" in text.get_text() and "mathdefault" not in text.get_text()
    ]
    assert len(shown) >= 12 and {text.get_text() for text in shown} >= set(NAMES[:2])
    assert not any(text.get_parse_math() or text.get_usetex() for text in shown)


def test_powers_of_ten_stay_powers(tmp_path: Path) -> None:
    figure, axis = new_figure(2, 2)
    axis.plot([1, 2], [1, 1e6])
    axis.set_yscale("log")
    axis.set_xticks([1, 2], ["$1$", "b"])
    save(figure, tmp_path / "a.png")
    powers, names = axis.get_yticklabels(), axis.get_xticklabels()
    assert powers and all(text.get_parse_math() for text in powers)
    assert names and not any(text.get_parse_math() for text in names)


@pytest.mark.parametrize("name", [*NAMES, "_a_", "1 < 2 & ~3~", "- x", "![i](j)"])
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


@pytest.mark.parametrize("stage", ["fit", "crossval"])
def test_a_run_quotes_names_in_its_predictions(stage: str, tmp_path: Path) -> None:
    """The option decides no result, and no other option is needed."""
    rows = ["id,a,label:x,label:y", *(f"=1+{row},{row},0.25,0.75" for row in range(20))]
    (tmp_path / "t.csv").write_text("\n".join(rows))
    chosen = ["--data.item_column=id", "--data.folds=2", f"--stage={stage}", "--quote_formulas=true"]
    main([*options(tmp_path / "t.csv", tmp_path / "run"), *chosen])
    (path, *_) = sorted((tmp_path / "run").rglob("predictions.csv"))
    with path.open(newline="", encoding="utf-8") as file:
        names = [row["name"] for row in csv.DictReader(file)]
    assert len(names) > 3 and all(name.startswith("'=1+") for name in names)


class _Broken(Exception):
    pass


@pytest.mark.parametrize("stage", ["fit", pytest.param("crossval", marks=pytest.mark.slow)])
def test_a_chart_that_fails_costs_a_line(
    stage: str, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recwarn: pytest.WarningsRecorder
) -> None:
    folder, there = tmp_path / "run", []

    def broken(figure: Figure, path: Path, **_: Any) -> None:
        run = path.parent.parent
        there.append(all((run / name).is_file() for name in ("results.json", "predictions.csv")) or run == folder)
        raise _Broken("no ink\nleft")

    monkeypatch.setattr(Figure, "savefig", broken)
    main([*options(table, folder), f"--stage={stage}", *(["--data.folds=2"] if stage == "crossval" else [])])
    lines = [str(warning.message) for warning in recwarn]
    assert "charts/distributions.png is left out: _Broken: no ink left" in lines
    assert (folder / "results.json").is_file() and there and all(there)
    if stage == "fit":
        with (folder / "predictions.csv").open(newline="", encoding="utf-8") as file:
            header = next(csv.reader(file))
        assert [name.removeprefix("target:") for name in header if name.startswith("target:")] == NAMES


@pytest.mark.parametrize("full", ["/dev/full"])
def test_a_full_disk_below_standard_output_ends_nothing(full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(full, "w", encoding="ascii") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        with ignore_broken_pipes():
            print("gr\u00fcn", flush=True)
            print("more", flush=True)


def test_output_that_nobody_reads_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(os.fdopen(writer, "wb"), line_buffering=True))
    os.close(reader)
    with ignore_broken_pipes():
        print("epoch 1")
        print("epoch 2")
    sys.stdout.close()
