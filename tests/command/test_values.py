"""The value of an option is what its type makes of the text, on the command line and in YAML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from fakes.yaml_texts import MARKS, WORDS

from ldl.command.command_line import parse_anew
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.options import option, options
from ldl.validation.yaml_text import Quoted


@options
class EveryType(LDLDataModule):
    """A data module with options of every type.

    Args:
        text: A text.
        maybe: A text or None.
        texts: Texts.
        either: Texts or a text.
        whole: A whole number.
        number: A number.
        flag: True or false.
        choice: One of some.
        numbers: Numbers.
        table: A mapping of anything.
        count: A whole number or None.
        any_of: A whole number or a text.
    """

    text: str = "default"
    maybe: str | None = None
    texts: Sequence[str] = ()
    either: Sequence[str] | str = ()
    whole: int = option(default=-1)
    number: float = option(default=-1.0)
    flag: bool | None = None
    choice: Literal["on", "off", "1:30", "auto"] = "auto"
    numbers: Sequence[float] = ()
    table: dict[str, Any] | None = None
    count: int | None = -1
    any_of: int | str = -1

    def load(self) -> Any:
        raise NotImplementedError


BASE = ("--model.head=Softmax", "--data=EveryType")


def made(*args: str) -> EveryType:
    """The object of a command line, which that of its dumped configuration equals."""
    config = parse_anew([*BASE, *args])
    data = config.instantiate("data")
    again = parse_anew(["-c", config.text()])
    assert again.text() == config.text()
    other = again.instantiate("data")
    assert all(same(getattr(data, name), getattr(other, name)) for name in NAMES)
    assert all(type(getattr(data, name)) is not Quoted for name in NAMES)
    return data  # type: ignore[return-value]


NAMES = tuple(EveryType.__annotations__)


def same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and repr(one) == repr(other)


def typed(name: str, text: str) -> Any:
    """What the object receives from the command line."""
    return getattr(made(f"--data.{name}={text}"), name)


def in_file(folder: Path, name: str, text: str) -> Any:
    """What it receives from a file."""
    (folder / "a.yaml").write_text(f"data:\n  class_path: EveryType\n  init_args:\n    {name}: {text}\n")
    return getattr(made("-c", str(folder / "a.yaml")), name)


@pytest.mark.parametrize("text", [*WORDS, *MARKS, "{a}", "{a: b}"])
def test_text_options_take_the_text(text: str, tmp_path: Path) -> None:
    names = ("text", "maybe", "either")
    quoted = text if text in WORDS else "'" + text.replace("'", "''") + "'"
    lines = "".join(f"    {name}: {quoted}\n" for name in names)
    (tmp_path / "a.yaml").write_text(f"data:\n  class_path: EveryType\n  init_args:\n{lines}")
    for data in (made(*(f"--data.{name}={text}" for name in names)), made("-c", str(tmp_path / "a.yaml"))):
        assert [getattr(data, name) for name in names] == [text] * 3


def test_null_is_none_where_it_may_be_and_a_text_in_quotes(tmp_path: Path) -> None:
    assert typed("maybe", "null") is None and in_file(tmp_path, "maybe", "null") is None
    assert in_file(tmp_path, "maybe", "") is None
    for name, text in (("maybe", "null"), ("either", "null"), ("either", "[a, b]"), ("any_of", "5"), ("maybe", "~")):
        assert in_file(tmp_path, name, f"'{text}'") == text
    assert typed("text", "null") == "null" == typed("either", "null")
    assert typed("count", "null") is None and typed("count", "~") is None and in_file(tmp_path, "count", "~") is None


@pytest.mark.parametrize("name", ["texts", "either"])
def test_lists_of_texts_keep_their_texts(name: str, tmp_path: Path) -> None:
    words = [*(word for word in WORDS if len(word) < 99), "null", "false"]
    assert list(typed(name, f"[{', '.join(words)}]")) == words
    assert list(in_file(tmp_path, name, f"[{', '.join(words)}]")) == words
    assert list(in_file(tmp_path, name, "".join(f"\n    - {word}" for word in words))) == words
    marks = ["#a", "*a", "&a b", "!a", "%a", "@a", "`a", "b #c", "it's", "a:b"]
    assert list(typed(name, f"[{', '.join(marks)}]")) == marks
    assert list(typed(name, "['a, b', \"[c]\", 'null', '001']")) == ["a, b", "[c]", "null", "001"]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("whole", "010", 10), ("whole", "+5", 5), ("whole", "-0", 0), ("number", "010", 10.0),
        ("number", "1e3", 1000.0),
        ("number", ".5", 0.5), ("number", "1.", 1.0), ("number", "-.inf", float("-inf")), ("number", "5", 5.0),
        ("number", "1e-5", 1e-5), ("count", "007", 7), ("any_of", "007", 7), ("any_of", "1e3", "1e3"),
        ("any_of", "1:30", "1:30"), ("any_of", "on", "on"), ("flag", "yes", True), ("flag", "Off", False),
        ("flag", "True", True), ("flag", "false", False), ("flag", "null", None), ("choice", "on", "on"),
        ("choice", "1:30", "1:30"), ("numbers", "[001, 005, 010]", [1.0, 5.0, 10.0]),
        ("numbers", "[1e3, .5, '2']", [1000.0, 0.5, 2.0]),
        ("table", "{a: 010, b: on, c: '5', d: [1:30, 1e3, ~], e: null, f: true, g: 'null', h: {i: 1_0}}",
         {"a": 10, "b": "on", "c": "5", "d": ["1:30", 1000.0, None], "e": None, "f": True, "g": "null",
          "h": {"i": "1_0"}}),
    ],
)  # fmt: skip
def test_other_options_take_what_the_text_spells(name: str, text: str, value: Any, tmp_path: Path) -> None:
    assert same(typed(name, text), value)
    assert same(in_file(tmp_path, name, text), value)


@pytest.mark.parametrize("name", ["whole", "number", "count", "numbers"])
@pytest.mark.parametrize("text", ["1:30", "1_000", "0x10", "on", "2020-01-01", "0b1", "\u00b2", "1e", "=", "190:20:30"])
def test_no_number_is_one_line(name: str, text: str, tmp_path: Path) -> None:
    text = f"[{text}]" if name == "numbers" else text
    for take in (typed, lambda *words: in_file(tmp_path, *words)):
        with pytest.raises(LDLError) as caught:
            take(name, text)
        assert text.strip("[]") in str(caught.value) and f"data.{name}" in str(caught.value).replace("init_args.", "")
        assert len(str(caught.value).splitlines()) == 1


def test_text_of_a_scalar_survives_merging_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("data: {class_path: EveryType, init_args: {texts: [01, on], maybe: 1e3}}\n")
    (tmp_path / "b.yaml").write_text("data: {init_args: {number: 1e3}}\n")
    data = made("-c", str(tmp_path / "a.yaml"), "-c", str(tmp_path / "b.yaml"))
    assert (list(data.texts), data.maybe, data.number) == (["01", "on"], "1e3", 1000.0)


def test_run_options_and_lightning(tmp_path: Path) -> None:
    config = parse_anew([*BASE, "--run_dir=#1", "--wandb.project=010", "--trainer.max_time=00:01:00:00"]).values
    assert (config.run_dir, config.wandb.project, config.trainer.max_time) == ("#1", "010", "00:01:00:00")
    (tmp_path / "a.yaml").write_text(
        "trainer: {max_time: 00:01:00:00, val_check_interval: 1.0, limit_val_batches: 1}\n"
    )
    trainer = parse_anew([*BASE, "-c", str(tmp_path / "a.yaml")]).values.trainer
    assert trainer.max_time == "00:01:00:00"
    assert same(trainer.val_check_interval, 1.0) and same(trainer.limit_val_batches, 1)
    with pytest.raises(LDLError, match=r"trainer\.max_epochs is '1:30'"):
        parse_anew([*BASE, "--trainer.max_epochs=1:30"])
    with pytest.raises(LDLError, match="jobs is '1_0'"):
        parse_anew([*BASE, "--jobs=1_0"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("data: {class_path: EveryType, init_args: {whole: null}}", "data.whole is 'None', but must be int"),
        ("data: {class_path: EveryType, init_args: {choice: }}", "data.choice is 'None', but must be one of 'on'"),
        ("data: {init_args: {number: ~}}", "data.number is 'None', but must be float"),
        ("model: {mixup: null}", "model.mixup is 'None', but must be float"),
        ("jobs: null", "jobs is 'None', but must be int"),
        ("jobs: 0", "jobs 0 must be at least 1"),
        ("stage: null", "stage is 'null', but must be one of 'compare'"),
        ("run_dir: ''", "--run_dir is empty; give a path, or leave it out"),
        ("ckpt_path: ''", "--ckpt_path is empty; give a path, or leave it out"),
        ("model: {optimizer: {lr: 1_0}}", "model.optimizer.lr is '1_0', but must be float"),
        ("model: {optimizer: {betas: '(.9, .99)'}}", "model.optimizer.betas is '(.9, .99)', but must be a list"),
        ("trainer: {max_epoch: 3}", "unknown option 'trainer.max_epoch'; did you mean 'trainer.max_epochs'?"),
        (
            "data: {class_path: EveryType, whole: 3}",
            "data.whole stands beside class_path; write it below",
        ),
        ("data: {class_path: EveryType, init_args: [3]}", "data.init_args is [3], but holds options"),
        (
            "trainer: {callbacks: {class_path: ModelCheckpoint, init_args: {train_time_interval: 00:10}}}",
            "trainer.callbacks.train_time_interval is '00:10': Expected a string with form",
        ),
    ],
)
def test_a_value_of_another_type_in_a_file_is_one_line(content: str, message: str) -> None:
    with pytest.raises(LDLError) as caught:
        parse_anew([*BASE, "-c", f"{content}\n"])
    assert message in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_choices_and_null_are_named() -> None:
    with pytest.raises(LDLError, match="data.protocol is 'x', but must be one of 'published', .* 'shuffled' or null"):
        parse_anew([BASE[0], "--data=TabularLDL", "--data.path=a", "--data.protocol=x"])


@pytest.mark.parametrize("options", ["{whole: 3, text: a}", "{init_args: {whole: 3, text: a}}"])
def test_options_of_a_file_go_to_the_class_that_is_named_elsewhere(options: str) -> None:
    file = ["-c", f"data: {options}\n"]
    for args in ([*BASE, *file], [*file, *BASE], [BASE[0], *file, "-c", "data: EveryType\n"]):
        inside = parse_anew(args).values.data.init_args
        assert (inside.whole, inside.text) == (3, "a")
    assert parse_anew([*file, *BASE, "--data.whole=4"]).values.data.init_args.whole == 4


def test_a_group_key_with_a_hash_keeps_groups_apart(tmp_path: Path) -> None:
    rows = [f"s{row // 4},{row % 7},{row % 5},0.3,0.7" for row in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["#subject,f0,f1,label:a,label:b", *rows, ""]))
    config = parse_anew(
        ["--model.head=Softmax", "--data=TabularLDL", f"--data.path={tmp_path}/a.csv", "--data.group_key", "#subject"]
    )
    data = config.instantiate("data")
    data.setup()
    assert (len(set(data.groups)), data.input_shape, data.protocol) == (10, (2,), "group_exclusive")  # type: ignore
    tested, trained = (set(data.groups[rows]) for rows in (data.split.test, data.split.train))  # type: ignore[index]
    assert tested and not tested & trained
