"""The guide to text runs as it is written, in a folder with made-up comments."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.comments import comments, save
from fakes.paths import ROOT

pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")

from ldl.command.console import command
from ldl.deploy.demo_server import serving

pytestmark = [pytest.mark.usefixtures("blank_charts"), pytest.mark.slow]

PAGE = (ROOT / "docs" / "guides" / "text.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
COMMANDS = [line for language, text in BLOCKS if not language for line in text.splitlines() if line.startswith("ldl ")]
CHECKPOINT = "runs/comments/checkpoints/last.ckpt"
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with all files of the guide."""
    folder = tmp_path_factory.mktemp("guide")
    save(folder)
    table, votes = comments()
    records = {
        str(item): {
            "text": text,
            "annotations": ",".join(votes.loc[votes["id"] == item, "label"]),
            "annotators": ",".join(votes.loc[votes["id"] == item, "rater"]),
            "split": "train",
        }
        for item, text in zip(table["id"], table["comment"])
    }
    (folder / "train.json").write_text(json.dumps(records))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield folder


@pytest.mark.parametrize("line", COMMANDS)
def test_command_runs(line: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, *words = shlex.split(line)
    if words[0] == "demo":
        with serving(folder / CHECKPOINT, 0) as address:
            assert address.startswith("http://127.0.0.1")
        return
    command([*words, *(QUIET if words[0].startswith("-") else [])])
    assert "768 features by wordllama" in capsys.readouterr().out or not words[0].startswith("-c")


def test_files_and_output_are_as_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = [text for language, text in BLOCKS if language == "csv"]
    for text, name in zip(shown, ("comments.csv", "votes.csv")):
        assert (folder / name).read_text().startswith(text)
    command([*shlex.split(COMMANDS[0])[1:-2], *QUIET, "--run_dir", str(folder / "again")])
    assert next(text for language, text in BLOCKS if language == "text") in capsys.readouterr().out


def test_python_prints_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = (text for language, text in BLOCKS if language == "python")
    exec(compile(code, "text.md", "exec"), {})
    assert capsys.readouterr().out == [text for language, text in BLOCKS if language == "text"][-1]


def test_the_usual_names_of_the_page_are_usual() -> None:
    from ldl.tables.roles import USUAL

    names = re.findall("`([a-z_]+)`", PAGE.split("that holds text:")[1].split("and others")[0])
    assert len(names) > 5 and set(names) <= set(USUAL["text"])
