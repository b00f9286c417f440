"""The tutorial from a CSV of votes to a model runs as it is written, in an empty folder."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pandas as pd
import pytest
from fakes.films import films
from fakes.paths import ROOT

from ldl.command.console import command

PAGE = ROOT / "docs" / "tutorial.md"
FILE = ROOT / "docs" / "examples" / "films.csv"


def test_the_sample_is_made_up() -> None:
    pd.testing.assert_frame_equal(
        pd.read_csv(FILE, keep_default_na=False, na_values=[""]), _as_read(films(600, 1, 1.0))
    )


def _as_read(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(mpaa=table["mpaa"].replace("", None))


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(FILE, tmp_path)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    shown, names = [], {}
    for language, text in blocks:
        if language == "":
            command([*shlex.split(text.replace("\\\n", " "))[1:]])
        elif language == "python":
            exec(text, names)
        elif shown or not text.startswith("id,"):
            shown.append(text)
    said = " ".join(capsys.readouterr().out.split())
    # Figures may differ in their last digits on other machines.
    for line in "".join(shown).replace("\n", " ").split("..."):
        words = re.split(r"[\d.]{3,}", " ".join(line.split()))
        assert all(part.strip(" []") in said for part in words if len(part) > 12), words
    assert sorted(path.name for path in (tmp_path / "films-model").iterdir()) == [
        "README.md",
        "config.json",
        "model.ckpt",
    ]
