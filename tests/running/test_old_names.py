"""Configurations that name classes, or files, as they were called before they moved."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from places import CONFIGS, ROOT

from ldl.cli import main
from ldl.errors import LDLError
from ldl.running.configs import find_config
from ldl.running.parser import LDLCLI
from ldl.spec import MOVED, current_path
from ldl.start.configs import shipped

pytestmark = pytest.mark.usefixtures("blank_charts")

OLD = Path(__file__).with_name("version_0_1.yaml")
"""The ``config.yaml`` of a run of version 0.1, as it was written."""


def test_config_of_an_old_run_still_runs(tmp_path: Path) -> None:
    text = OLD.read_text()
    assert "ldl.backbone.Timm" in text
    main(["-c", str(OLD), "--run_dir", str(tmp_path)])
    assert (tmp_path / "results.json").is_file()
    assert "ldl.backbones" in (tmp_path / "config.yaml").read_text()


@pytest.mark.parametrize("path", MOVED)
def test_every_class_that_moved_is_found(path: str) -> None:
    module, _, name = current_path(path).rpartition(".")
    cls = getattr(import_module(module), name)
    assert cls.__module__ == module
    part = "data" if path.startswith("ldl.data") else "model.backbone"
    required = {"Bags": ["--data.path=x"], "TabularLDL": ["--data.path=x"], "TabularValues": ["--data.path=x"]}
    config = LDLCLI(["-c", str(CONFIGS / "default.yaml"), f"--{part}={path}", *required.get(name, [])]).config
    named = config.data.class_path if part == "data" else config.model.backbone.class_path
    assert named.rpartition(".")[2] == name and named != path


def test_paths_of_others_stay() -> None:
    assert current_path("torch.optim.AdamW") == "torch.optim.AdamW"
    assert current_path("ldl.heads.LDLF") == "ldl.heads.LDLF"


@pytest.mark.parametrize("name", ["sjaffe_ldlf", "tabular_structrf_paper", "fgnet_aam_dsna", "natural_scene_ldlf"])
def test_runs_by_old_path_and_by_name(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    file = shipped(CONFIGS)[name]
    assert file.is_file()
    asked = (name, f"configs/runs/{name}.yaml", str(CONFIGS / "runs" / f"{name}.yaml"), str(file.relative_to(ROOT)))
    assert {Path(find_config(given)) for given in asked} == {file}


def test_names_in_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``a_b.yaml`` of yesterday is ``a/b.yaml`` today; other parts have the names of their folders."""
    (tmp_path / "train.py").touch()
    for file in ("default.yaml", "runs/toys/big_one.yaml", "heads/one.yaml"):
        (tmp_path / "configs" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "configs" / file).touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr("ldl.start.configs.project_root", lambda: tmp_path)
    known = {
        "toys_big_one": "runs/toys/big_one.yaml",
        "configs/runs/toys_big_one.yaml": "runs/toys/big_one.yaml",
        "toys/big_one": "runs/toys/big_one.yaml",
        "configs/heads/one.yaml": "heads/one.yaml",
        "heads/one": "heads/one.yaml",
        "default": "default.yaml",
        "configs/runs/digits_ldlf.yaml": "default.yaml",
    }
    assert {given: find_config(given) for given in known} == {
        given: str(tmp_path / "configs" / file) for given, file in known.items()
    }
    assert find_config("model: {head: LDLF}") == "model: {head: LDLF}"
    with pytest.raises(LDLError, match="configuration toys_big_won does not exist; did you mean 'toys_big_one'"):
        find_config("toys_big_won")
    with pytest.raises(LDLError, match=r"configuration mine/a\.yaml does not exist; .*configs holds"):
        find_config("mine/a.yaml")


def test_no_two_files_have_one_name() -> None:
    assert len({*shipped(CONFIGS).values()}) == len(list(CONFIGS.rglob("*.yaml")))


def test_the_command_line_takes_names(capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["-c", "tabular_softmax"], ["--config=tabular_softmax"]):
        with pytest.raises(SystemExit):
            main([*option, "--data.path=x.csv", "--print_config"])
        assert "class_path: ldl.data.TabularLDL" in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["-c", "tabular_sofmax"])
    assert exit_.value.code == 2 and "did you mean 'tabular_softmax'" in capsys.readouterr().err
