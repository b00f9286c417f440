"""The command line: defaults, and how configurations and options compose."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml
from fakes.paths import ROOT

from ldl.command import main
from ldl.command.command_line import parse_anew
from ldl.command.values import whole_numbers_first

pytestmark = pytest.mark.usefixtures("blank_charts")


def _parse(*args: str) -> Any:
    return parse_anew(["-c", str(ROOT / "configs/default.yaml"), *args]).values


def test_a_new_class_starts_from_its_own_defaults(tmp_path: Path) -> None:
    """Named on the command line or in a second file; the optimiser, the head and the data alike."""
    config = _parse("--model.optimizer=SGD")
    assert config.model.optimizer.init_args.weight_decay == 0
    assert config.model.optimizer.init_args.lr == 0.001
    config = _parse("--model.head=Softmax")
    assert list(config.model.head.init_args.hidden) == []
    config = _parse("--data.fold=3", "--data.turns=2", "--data=TabularLDL", "--data.path=x.mat")
    assert (config.data.init_args.fold, config.data.init_args.batch_size) == (3, 64)  # what was given stays
    second = tmp_path / "second.yaml"
    second.write_text("model: {head: {class_path: Softmax, init_args: {objective: sord}}, optimizer: SGD}\n")
    config = _parse("-c", str(second))
    assert list(config.model.head.init_args.hidden) == []
    assert config.model.optimizer.init_args.weight_decay == 0


def test_options_of_a_class_may_stand_beside_no_class(tmp_path: Path) -> None:
    """As in configs/trainer/gpu.yaml."""
    (tmp_path / "a.yaml").write_text("data: {num_workers: 3}\nmodel: {optimizer: {init_args: {lr: 0.5}}}\n")
    config = _parse("-c", str(tmp_path / "a.yaml"))
    assert config.data.init_args.num_workers == 3 and config.data.class_path.endswith("RotatedDigits")
    assert config.model.optimizer.init_args.lr == 0.5


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


def test_one_batch_is_not_all_of_them() -> None:
    """typing's cache keeps one of two equal unions; which one depends on the order of imports."""
    assert get_args(whole_numbers_first(float | int | None)) == (int, float, type(None))
    assert get_args(whole_numbers_first(str | float | int)) == (int, float, str)
    for given, kind in (("1", int), ("1.0", float)):
        assert type(_parse("--trainer.limit_test_batches", given).trainer.limit_test_batches) is kind


@pytest.mark.parametrize("text", ["[yes,no,on]", "[1, 2.0, 01]", "['1', \"b\"]"])
def test_texts_are_what_was_typed(text: str) -> None:
    config = _parse("--data=TabularLDL", "--data.path=x", f"--data.label_names={text}")
    typed = [part.strip(" '\"") for part in text.strip("[]").split(",")]
    assert list(config.data.init_args.label_names) == typed
