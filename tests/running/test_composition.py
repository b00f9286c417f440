"""The command line: defaults, and how configurations and options compose."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from places import ROOT

from ldl.cli import main
from ldl.running.parser import LDLCLI

pytestmark = pytest.mark.usefixtures("blank_charts")


def _parse(*args: str) -> object:
    return LDLCLI(["-c", str(ROOT / "configs/default.yaml"), *args]).config


def test_a_new_class_starts_from_its_own_defaults(tmp_path: Path) -> None:
    """Named on the command line or in a second file; the optimiser, the head and the data alike."""
    config = _parse("--model.optimizer.weight_decay=0.3", "--model.optimizer=SGD")
    assert config.model.optimizer.init_args.weight_decay == 0
    assert config.model.optimizer.init_args.lr == 0.001
    config = _parse("--model.head=Softmax")
    assert list(config.model.head.init_args.hidden) == []
    config = _parse("--data.fold=3", "--data.batch_size=7", "--data=TabularLDL", "--data.path=x.mat")
    assert (config.data.init_args.fold, config.data.init_args.batch_size) == (0, 64)
    second = tmp_path / "second.yaml"
    second.write_text("model: {head: {class_path: Softmax, init_args: {objective: sord}}, optimizer: SGD}\n")
    config = _parse("-c", str(second))
    assert list(config.model.head.init_args.hidden) == []
    assert config.model.optimizer.init_args.weight_decay == 0


def test_naming_the_same_class_keeps_its_options() -> None:
    config = _parse("--model.head=LDLF", "--model.head.depth=4", "--model.optimizer=torch.optim.AdamW")
    assert (config.model.head.init_args.depth, config.model.head.init_args.trees) == (4, 5)
    assert config.model.optimizer.init_args.lr == 0.012


def test_default_is_read_only_without_a_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "own.yaml"
    config.write_text(
        "model: {head: Softmax, backbone: {class_path: Identity, init_args: {flatten: true}}}\ndata: RotatedDigits\n"
    )
    with pytest.raises(SystemExit):
        main(["-c", str(config), "--print_config"])
    printed = yaml.safe_load(capsys.readouterr().out)
    assert printed["trainer"]["max_epochs"] is None and printed["model"]["decoder"] == "expectation"
    with pytest.raises(SystemExit):
        main(["--print_config"])
    assert yaml.safe_load(capsys.readouterr().out)["trainer"]["max_epochs"] == 40
