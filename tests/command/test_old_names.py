"""Configurations that name classes, or files, as they were called before they moved."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest
from fakes.paths import CONFIGS

from ldl.backbones import Backbone
from ldl.command import main
from ldl.command.classes import BASES
from ldl.command.command_line import parse_anew
from ldl.command.configs import find_config
from ldl.data import LDLDataModule
from ldl.errors import LDLError
from ldl.head import Head
from ldl.moved import NAMES as MOVED
from ldl.moved import current_path

pytestmark = pytest.mark.usefixtures("blank_charts")

OLD = Path(__file__).with_name("version_0_1.yaml")
"""The ``config.yaml`` of a run of version 0.1, as it was written."""


def test_config_of_an_old_run_still_runs(tmp_path: Path) -> None:
    text = OLD.read_text()
    assert "ldl.backbone.Timm" in text
    main(["-c", str(OLD), "--run_dir", str(tmp_path)])
    assert (tmp_path / "results.json").is_file()
    assert "ldl.backbones" in (tmp_path / "config.yaml").read_text()


def can_be_named(path: str) -> bool:
    """Whether a configuration can name the class of an old path."""
    cls = resolve_name(current_path(path))
    if not isinstance(cls, type) or inspect.isabstract(cls):
        return False
    return path.startswith("ldl.callbacks") or issubclass(cls, Head | Backbone | LDLDataModule)


@pytest.mark.parametrize("path", [path for path in MOVED if can_be_named(path)])
def test_every_class_that_moved_is_found(path: str) -> None:
    module, _, name = current_path(path).rpartition(".")
    cls = getattr(import_module(module), name)
    assert cls.__module__ == module
    if not issubclass(cls, tuple(BASES.values())) and not path.startswith("ldl.callbacks"):
        return  # no configuration names it
    kinds = {"ldl.data": "data", "ldl.inference": "data", "ldl.heads": "model.head"}
    part = next((kinds[start] for start in kinds if path.startswith(start)), "model.backbone")
    required = {"Bags": ["--data.path=x"], "TabularLDL": ["--data.path=x"], "TabularValues": ["--data.path=x"]}
    required |= {"TableFile": ["--data.path=x"], "WholePictures": ["--data.path=x"]}
    if path.startswith("ldl.callbacks"):
        trainer = parse_anew(["-c", str(CONFIGS / "default.yaml"), f"--trainer.callbacks+={path}"]).values.trainer
        assert trainer.callbacks[-1].class_path == current_path(path)
        return
    config = parse_anew(["-c", str(CONFIGS / "default.yaml"), f"--{part}={path}", *required.get(name, [])]).values
    named = config.data if part == "data" else config.model[part.rpartition(".")[2]]
    assert named.class_path.rpartition(".")[2] == name and named.class_path != path


DEFAULT = str(CONFIGS / "default.yaml")
EDGES = "data: BSDS500"
CRISP = [
    (["-c", f"{EDGES}\n", "--model.crisp", "2"], 2),
    (["-c", f"{EDGES}\n", "--model.crisp=2"], 2),
    (["-c", f"model: {{crisp: 3}}\n{EDGES}\n"], 3),
    (["-c", f"{EDGES}\n", "-c", "model: {crisp: 3}\n"], 3),
    (["-c", "model: {crisp: 3}\ndata: {class_path: BSDS500, init_args: {crop: 64}}\n", "--model.crisp=0"], 0),
    (["-c", f"{EDGES}\n", "-c", "model: {crisp: 3}\n", "-c", f"model: {{crisp: 0.0}}\n{EDGES}\n"], 0),
]
"""Command lines with an option of the model that is one of the data now, and its value."""


@pytest.mark.parametrize(("args", "crisp"), CRISP)
def test_an_option_that_moved(args: list[str], crisp: float) -> None:
    config = parse_anew(["-c", DEFAULT, *args]).values
    assert config.data.class_path.endswith(".BSDS500") and config.data.init_args.crisp == crisp
    assert "crisp" not in config.model


def test_a_complete_old_configuration_has_the_option_beside_other_data() -> None:
    args = ["-c", DEFAULT, "-c", "model: {crisp: 0.0}\ndata: RotatedDigits\n"]
    assert parse_anew(args).values.data.class_path.endswith(".RotatedDigits")
    with pytest.raises(LDLError, match="RotatedDigits has no option 'crisp'"):
        parse_anew([*args, "--model.crisp=1"])


def test_names_in_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``a_b.yaml`` of yesterday is ``a/b.yaml`` today; other parts have the names of their folders."""
    (tmp_path / "train.py").touch()
    for file in ("default.yaml", "runs/toys/big_one.yaml", "heads/one.yaml"):
        (tmp_path / "configs" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "configs" / file).touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.setattr("ldl.command.configs.project_root", lambda: tmp_path)
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


def test_the_command_line_takes_names(capsys: pytest.CaptureFixture[str]) -> None:
    for option in (["-c", "tabular_softmax"], ["--config=tabular_softmax"]):
        with pytest.raises(SystemExit):
            main([*option, "--data.path=x.csv", "--print_config"])
        assert "class_path: ldl.data.TabularLDL" in capsys.readouterr().out
    with pytest.raises(SystemExit) as exit_:
        main(["-c", "tabular_sofmax"])
    assert exit_.value.code == 2 and "did you mean 'tabular_softmax'" in capsys.readouterr().err


def test_the_parser_of_0_2_gives_a_configuration() -> None:
    with pytest.warns(DeprecationWarning, match="ldl.engine.parser"):
        from ldl.engine.parser import LDLCLI  # noqa: PLC0415
    config = LDLCLI(["-c", str(CONFIGS / "default.yaml"), "--model.head.trees=3"])
    assert config.values.model.head.init_args.trees == 3 and config.instantiate("model").head.trees == 3
