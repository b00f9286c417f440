"""The guide to models of raters runs as it is written, in a folder with made-up votes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes.comments import comments, unequal_votes
from fakes.paths import ROOT

pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")

from ldl.command.console import command

pytestmark = [pytest.mark.usefixtures("blank_charts"), pytest.mark.slow]

PAGE = (ROOT / "docs" / "guides" / "raters.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
FIT, COMPARE = (text for language, text in BLOCKS if not language)
RESULTS, RATERS, PRINTED = (text for language, text in BLOCKS if language == "text")
(CODE,) = (text for language, text in BLOCKS if language == "python")
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with both files of the guide."""
    folder = tmp_path_factory.mktemp("guide")
    table, _ = comments(300)
    table.drop(columns="length").to_csv(folder / "comments.csv", index=False)
    unequal_votes(table).to_csv(folder / "votes.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


def test_files_are_as_shown(folder: Path) -> None:
    shown = [text for language, text in BLOCKS if language == "csv"]
    for text, name in zip(shown, ("comments.csv", "votes.csv")):
        assert (folder / name).read_text().startswith(text)


def test_the_run_finds_what_is_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command([*shlex.split(FIT)[1:], *QUIET])
    printed = capsys.readouterr().out
    results = dict(re.findall(r"^ (\w+) +([\d.]+) *$", printed, re.MULTILINE))
    shown = dict(re.findall(r"^ (\w+) +([\d.]+) *$", RESULTS, re.MULTILINE))
    for name, number in shown.items():  # other processors round differently
        assert float(results[name]) == pytest.approx(float(number), abs=0.02), name
    raters = pd.read_csv(folder / "runs" / "raters" / "raters.csv").set_index("rater")
    for rater, bias, informativeness in re.findall(r"^ +(\w+) +(\S+) +(\S+)$", RATERS, re.MULTILINE)[1:]:
        assert raters.loc[rater, "bias:rude"] == pytest.approx(float(bias), abs=0.02)
        assert raters.loc[rater, "informativeness"] == pytest.approx(float(informativeness), abs=0.03)
    assert raters["bias:rude"].idxmax() == "dee" and raters["informativeness"].idxmin() == "eli"


def test_the_predictions_of_a_rater_are_as_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not (folder / "runs" / "raters").exists():
        command([*shlex.split(FIT)[1:], *QUIET])
    capsys.readouterr()
    scope: dict[str, Any] = {}
    exec(compile(CODE, "raters.md", "exec"), scope)
    assert capsys.readouterr().out == PRINTED
    np.testing.assert_allclose(scope["each"].distribution[1::2], scope["strict"].distribution[1::2], atol=1e-6)


def test_the_comparison_prefers_a_model_of_raters(folder: Path) -> None:
    command([*shlex.split(COMPARE)[1:], *QUIET])
    rows = (folder / "runs" / "compare" / "table.md").read_text().splitlines()
    last = {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in rows if row.count("|") > 3}
    assert last["confusion"] == "best" and last["item"] not in ("best", "-"), rows
