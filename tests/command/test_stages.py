"""Stages that other packages register by entry points."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace

import pytest

import ldl.plugins
from ldl.command import main
from ldl.command.arguments import tokenize
from ldl.command.command_line import Command
from ldl.command.stages import StageEntry, stages
from ldl.errors import LDLError
from ldl.plugins import STAGES, load_registered

MODULE = """
from ldl.command.stages import StageEntry

COUNT = StageEntry("their_stages:count", "count the arguments", "counting", "counting.yaml")

def count(command):
    print(command.stage_config, len(command.arguments))
"""


@pytest.fixture
def counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A configuration of a stage that another package registers."""
    (tmp_path / "their_stages.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    point = EntryPoint("count", "their_stages:COUNT", STAGES)
    points = {name: SimpleNamespace(load=lambda entry=entry: entry) for name, entry in stages().items()}
    registered = ldl.plugins.registered
    monkeypatch.setattr(
        ldl.plugins, "registered", lambda group: points | {"count": point} if group == STAGES else registered(group)
    )
    load_registered.cache_clear()
    config = tmp_path / "own.yaml"
    config.write_text("counting: {}\n")
    yield str(config)
    load_registered.cache_clear()


def test_a_package_registers_a_stage(counting: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["-c", counting, "--stage", "count"])
    main(["-c", counting])
    assert capsys.readouterr().out == f"{counting} 2\n{counting} 1\n"
    with pytest.raises(SystemExit):
        main(["--help"])
    assert ["count", "count the arguments"] in [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--stage", "fit"], "has the key counting, and --stage is fit; give --stage count"),
        (["-c", "counting: {}\n"], "--stage count takes one file with the key counting, such as -c counting.yaml, and"),
    ],
)
def test_a_file_of_a_stage_stands_alone(words: list[str], message: str, counting: str) -> None:
    with pytest.raises(LDLError) as error:
        Command(tokenize(["-c", counting, *words])).stage_config  # noqa: B018
    assert message in str(error.value)


def test_every_stage_has_a_function() -> None:
    assert stages().keys() == {"compare", "crossval", "fit", "predict", "test", "tune"}
    for entry in stages().values():
        assert isinstance(entry, StageEntry)
        assert callable(EntryPoint("", entry.function, "").load())
