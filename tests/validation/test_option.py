"""The role of an option decides how runs, comparisons and searches treat it, also in the classes of a plugin."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from ldl.backbones import Identity
from ldl.checkpoint import CHECKPOINT_KEY, OPTIONS_KEY
from ldl.command.arguments import tokenize, words_of
from ldl.command.beside import read_beside
from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import Softmax
from ldl.jobs.identity import deciding_options
from ldl.options import names_with_role, option, options, role_of
from ldl.run.record import changes_of, check_resumed, with_new_data
from ldl.run.run_options import RUN_OPTIONS, TRAINER_OPTIONS, is_neutral
from ldl.search.runs import RunSummary, comparison, unpaired
from ldl.search.tune import _check_role
from ldl.validation.option import ROLES, Option


@options
class Survey(TabularLDL):
    """A data module of a plugin, with an option of each role.

    Args:
        survey_file: Role path.
        wave: Role fold.
        country: Role group.
        held_out: Role validation.
        question: Role label.
        answers: Role feature.
        oversample: Role training.
        scratch: Role place.
        readers: Role speed.
        verbose: Role display.
    """

    survey_file: str | None = option(default=None, role="path")
    wave: int = option(default=0, role="fold")
    country: str | None = option(default=None, role="group")
    held_out: int = option(default=1, role="validation")
    question: str | None = option(default=None, role="label")
    answers: str | None = option(default=None, role="feature")
    oversample: float = option(default=0.0, role="training")
    scratch: str | None = option(default=None, role="place", is_path=True)
    readers: int = option(default=1, role="speed")
    verbose: bool = option(default=False, role="display")


@options
class OldSurvey(TabularLDL):
    """A data module of a plugin of ldl 0.2, which declares no roles.

    Args:
        path: The table.
        cache_dir: Folder of the cache.
        wave: Plain option.
    """

    path: str = "table.csv"
    cache_dir: str | None = None
    wave: int = 0


@options
class Book(TabularLDL):
    """Has an option with the name of another one.

    Args:
        pages: Role label.
    """

    pages: int = option(default=1, role="label")


@options
class Printer(TabularLDL):
    """Has an option with the name of another one.

    Args:
        pages: Role speed.
    """

    pages: int = option(default=1, role="speed")


@options
class Warm(Softmax):
    """A head of a plugin.

    Args:
        first_weights: Role start.
        workers: Role speed.
    """

    first_weights: str | None = option(default=None, role="start", is_path=True, may_change=True)
    workers: int = option(default=1, role="speed", may_change=True)


@options
class Initialised(Identity):
    """A backbone of a plugin.

    Args:
        initial: Role start.
        buffer_file: Role place.
    """

    initial: str = option(default="zeros", role="start")
    buffer_file: str | None = option(default=None, role="place", is_path=True)


class Plain(Head):
    """A head with an ``__init__`` of its own."""

    option_roles: ClassVar[dict[str, str]] = {"own_threads": "speed"}

    def __init__(self, own_threads: int = 1) -> None:
        super().__init__()
        self.own_threads = own_threads


def spec(cls: type, **init_args: Any) -> dict[str, Any]:
    return {"class_path": f"{cls.__module__}.{cls.__qualname__}", "init_args": init_args}


def content(data: dict[str, Any], head: dict[str, Any], backbone: dict[str, Any], **run: Any) -> dict[str, Any]:
    trainer = {"max_epochs": 3, **{name: None for name, each in TRAINER_OPTIONS.items() if each.role == "display"}}
    model = {"head": head, "backbone": backbone, "optimizer": None, "start": None, "mixup": 0.0}
    return {"seed_everything": 0, "select": "last", **run, "model": model, "data": data, "trainer": trainer}


BEFORE: dict[str, Any] = {
    **{"survey_file": "a", "wave": 0, "country": "c", "held_out": 1, "question": "q", "answers": "a"},
    **{"oversample": 0.0, "scratch": "s", "readers": 1, "verbose": False, "fold": 0},
}
NOW: dict[str, Any] = {
    **{"survey_file": "b", "wave": 1, "country": "d", "held_out": 2, "question": "r", "answers": "b"},
    **{"oversample": 1.0, "scratch": "t", "readers": 2, "verbose": True, "fold": 1},
}


def deciding(**init_args: Any) -> dict[str, Any]:
    data = spec(Survey, **{**BEFORE, **init_args})
    return deciding_options(yaml.safe_dump(content(data, spec(Warm), spec(Initialised))))


def test_roles_are_of_the_table() -> None:
    with pytest.raises(LDLError, match=r"^role 'paths' must be one of path, fold, group, .*display$"):
        option(role="paths")
    assert role_of(Survey(path="x"), "wave") == role_of(Survey, "wave") == "fold"
    assert role_of(Survey, "fold_seed") == "fold" and role_of(Survey, "batch_size") == role_of(Survey, "absent") == ""
    assert role_of(Plain, "own_threads") == "speed" and "own_threads" in names_with_role(Head, "speed")
    declared = [*TRAINER_OPTIONS.values(), *(each for each, _ in RUN_OPTIONS.values())]
    assert {each.role for each in declared} <= ROLES.keys() and all(isinstance(each, Option) for each in declared)


def test_a_subclass_keeps_role_and_path() -> None:
    @options
    class Narrow(Survey):
        """Below a plugin's class.

        Args:
            scratch: With another default.
            wave: With a range.
        """

        scratch: str | None = "~/scratch"
        wave: int = option(default=2, least=1)

    assert role_of(Narrow, "scratch") == "place" and role_of(Narrow, "wave") == "fold"
    assert Narrow(path="x").scratch == os.path.expanduser("~/scratch")


def test_home_is_replaced_in_paths_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    data = Survey(path="~/a", survey_file="~/b", scratch="~/c", question="~/d")
    assert (data.path, data.survey_file, data.scratch) == ("/home/me/a", "/home/me/b", "/home/me/c")
    assert data.question == "~/d"
    assert Warm(first_weights="~/w").first_weights == "/home/me/w"
    assert Initialised(initial="~/i", buffer_file="~/f").buffer_file == "/home/me/f"
    old = OldSurvey(path="~/a", cache_dir="~/c")
    assert (old.path, old.cache_dir) == ("/home/me/a", "/home/me/c")


def test_the_key_of_a_fold_has_what_decides_it() -> None:
    same = {name for name, value in NOW.items() if deciding(**{name: value}) == deciding()}
    assert same == {"survey_file", "scratch", "readers", "verbose", "fold"}
    head, backbone = spec(Warm, workers=2, first_weights="w"), spec(Initialised, buffer_file="f", initial="i")
    pool = spec(Softmax, heads=[spec(Warm, workers=2)])
    model = deciding_options(yaml.safe_dump(content(spec(Survey), head, backbone)))["model"]
    assert model["head"]["init_args"] == {"first_weights": "w"} and model["backbone"]["init_args"] == {"initial": "i"}
    model = deciding_options(yaml.safe_dump(content(spec(Survey), pool, backbone)))["model"]
    assert model["head"]["init_args"]["heads"][0]["init_args"] == {}


def test_a_key_has_an_option_whose_name_is_a_place_elsewhere() -> None:
    text = yaml.safe_dump(content(spec(Book, pages=3), spec(Warm), spec(Initialised)))
    assert deciding_options(text)["data"]["init_args"] == {"pages": 3}
    text = yaml.safe_dump(content(spec(Printer, pages=3), spec(Warm), spec(Initialised)))
    assert deciding_options(text)["data"]["init_args"] == {}


def test_the_key_of_an_old_plugin_lacks_its_places() -> None:
    text = yaml.safe_dump(content(spec(OldSurvey, path="a", cache_dir="b", val_fraction=0.1), spec(Warm), spec(Warm)))
    assert deciding_options(text)["data"]["init_args"] == {"val_fraction": 0.1}


def test_options_of_a_run_without_a_result_are_in_no_key() -> None:
    run = dict.fromkeys(RUN_OPTIONS, "anything")
    key = deciding_options(yaml.safe_dump(content(spec(Survey), spec(Warm), spec(Warm), **run)))
    assert key.keys() & RUN_OPTIONS.keys() == {"select", "matmul_precision"} and key["trainer"] == {"max_epochs": 3}


def test_two_runs_are_paired_if_the_roles_allow_it() -> None:
    before = {"data.class_path": "Survey", **{f"data.{name}": value for name, value in BEFORE.items()}}
    folds = [{"fold": fold, "n_test": 5, "metrics": {"kl": 0.1 * fold}} for fold in range(2)]
    measured: dict[str, Any] = {"folds": folds, "mean": {"kl": 0.05}}
    run = RunSummary(Path("a"), "when", "data", "kfold", "Warm", "crossval", **measured, options=before)
    others = {name: replace(run, options={**before, f"data.{name}": value}) for name, value in NOW.items()}
    paired = {name for name, other in others.items() if unpaired(run, other) is None}
    assert paired == {"held_out", "answers", "oversample", "scratch", "readers", "verbose", "fold"}
    listed = {name for name, other in others.items() if "the same options" not in comparison(run, other)}
    assert listed == NOW.keys() - {"scratch", "readers", "verbose", "fold"}


def test_a_search_tries_no_option_that_decides_what_is_measured() -> None:
    refused = {}
    for name in NOW:
        try:
            _check_role(f"data.{name}", Survey(path="x"))
        except LDLError as error:
            refused[name] = str(error)
    assert refused.keys() == {"survey_file", "wave", "country", "held_out", "question", "fold"}
    assert refused["question"].startswith("it decides the labels and targets of the instances; ")
    _check_role("data.wave", OldSurvey())


@pytest.mark.parametrize(
    ("head", "backbone", "name"),
    [
        ({"first_weights": "w"}, {}, "model.head.first_weights"),
        ({}, {"initial": "ones"}, "model.backbone.initial"),
        ({"workers": 2}, {"buffer_file": "f"}, ""),
    ],
)
def test_a_resumed_run_keeps_its_start(head: dict[str, Any], backbone: dict[str, Any], name: str) -> None:
    first = {"first_weights": None, "workers": 1}, {"initial": "zeros", "buffer_file": None}
    saved = {OPTIONS_KEY: {"given": content(spec(Survey), spec(Warm, **first[0]), spec(Initialised, **first[1]))}}
    now = content(spec(Survey), spec(Warm, **{**first[0], **head}), spec(Initialised, **{**first[1], **backbone}))
    if not name:
        check_resumed(saved, "last.ckpt", now)
        return
    with pytest.raises(LDLError, match=f"^{name} has no effect on a resumed run"):
        check_resumed(saved, "last.ckpt", now)


def test_a_resumed_run_reports_what_may_change_its_result() -> None:
    saved = {OPTIONS_KEY: {"given": content(spec(Survey, **BEFORE), spec(Warm), spec(Initialised))}, "global_step": 7}
    line = changes_of(saved, "last.ckpt", content(spec(Survey, **NOW), spec(Warm), spec(Initialised)))
    assert line.startswith("from step 7 on: ") and "data.oversample 1.0 in place of 0.0" in line
    assert not [name for name in ("scratch", "readers", "verbose") if name in line]
    assert is_neutral("wandb.mode") and is_neutral("trainer.logger") and is_neutral("data.num_workers")
    assert not any(map(is_neutral, ("trainer.max_epochs", "model.head.hidden", "data.wave", "select", "ckpt_path")))


def test_a_prediction_reads_no_labels_groups_and_options_of_training() -> None:
    checkpoint = {CHECKPOINT_KEY: {"preprocessing": {"scaling": None}, "backbone": spec(Initialised)}}
    words = ["--stage=predict", "--data.path=new.csv"]
    unread = ["--data.question=q", "--data.country=c", "--data.oversample=1", "--data.sigma=2"]
    new = ["--stage=predict", "--data", "TableFile", "--data.path=new.csv"]
    assert words_of(with_new_data(tokenize([*words, *unread]), checkpoint, "new.csv")) == words_of(tokenize(new))
    for other in ("--data.wave=1", "--data.protocol=kfold"):
        arguments = tokenize([*words, other])
        assert with_new_data(arguments, checkpoint, "new.csv") == arguments


def test_a_configuration_beside_a_checkpoint_names_no_place(tmp_path: Path) -> None:
    written = content(spec(Survey, scratch="s", readers=2), spec(Warm, workers=3), spec(Initialised, buffer_file="f"))
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(written))
    read = read_beside(tmp_path / "config.yaml")
    assert read["data"]["init_args"].keys() == {"readers"} and read["model"]["head"]["init_args"].keys() == {"workers"}
    assert read["model"]["backbone"]["init_args"] == {}
