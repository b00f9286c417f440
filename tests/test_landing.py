"""The start pages show what the example prints, and their picture is drawn from its run."""

from __future__ import annotations

import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from fakes.paths import ROOT, load_script

from ldl.command.console import command

COMMAND = "ldl -c nodules --stage crossval"
SHOWN = re.compile(rf"^```\n{COMMAND}\n```\n\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = r"\d[\d,]*(?:\.\d+)?"
pytestmark = pytest.mark.slow

draw_nodules = load_script(ROOT / "docs" / "draw_nodules.py")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory and the output of the run of the start pages, in an empty folder without data."""
    folder, stream = tmp_path_factory.mktemp("empty"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(stream):
        patch.chdir(folder)
        patch.delenv("LDL_DATA", raising=False)
        command([*shlex.split(COMMAND)[1:], "--run_dir", "runs/nodules", "--wandb.mode=disabled"])
    return folder / "runs" / "nodules", stream.getvalue()


def _floats(numbers: list[str]) -> list[float]:
    return [float(number.replace(",", "")) for number in numbers]


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_start_pages_show_the_output_of_a_run(page: str, output: tuple[Path, str]) -> None:
    [shown] = SHOWN.findall((ROOT / page).read_text())
    words = [f"({NUMBER})".join(map(re.escape, re.split(NUMBER, word))) for word in shown.split()]
    pattern = r"\s+".join(words).replace(re.escape("..."), ".*")
    match = re.search(pattern, output[1], re.DOTALL)
    assert match, output[1]
    # Last digits differ between machines.
    assert _floats(list(match.groups())) == pytest.approx(_floats(re.findall(NUMBER, shown)), rel=0.1)


def test_the_pictures_follow_from_the_run(
    output: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draw_nodules, "PICTURES", tmp_path)
    draw_nodules.main(output[0])
    assert {path.name for path in tmp_path.iterdir()} == {"nodules.png", "disagreement.png"}
    rows, shares, predictions = draw_nodules.read_predictions(output[0])
    assert len(rows) == 911 and shares * 4 == pytest.approx((shares * 4).round(), abs=1e-5)
    assert predictions.sum(1) == pytest.approx(1, abs=1e-5)
