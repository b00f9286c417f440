"""Old paths and option names lead to the current ones."""

from __future__ import annotations

import importlib

import pytest

from ldl.moved import NAMES as MOVED
from ldl.moved import current_option, current_path, old_names


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_moved_classes_are_found(old: str, new: str) -> None:
    module, _, name = current_path(old).rpartition(".")
    cls = getattr(importlib.import_module(module), name)
    assert f"{cls.__module__}.{cls.__name__}" == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ldl.cli.command.main", "ldl.command.console.main"),
        ("ldl.heads.MILBoost", "ldl.bags.milboost.MILBoost"),
        ("torch.optim.AdamW", "torch.optim.AdamW"),
        ("Softmax", "Softmax"),
    ],
)
def test_a_path_is_replaced_by_its_name_or_its_module(old: str, new: str) -> None:
    assert current_path(old) == new


@pytest.mark.parametrize(
    ("word", "current"),
    [
        ("--model.crisp=2", "--data.crisp=2"),
        ("--model.crisp", "--data.crisp"),
        ("model.crisp", "model.crisp"),
        ("--model.head=LDLF", "--model.head=LDLF"),
    ],
)
def test_an_old_option_of_a_command_line_is_replaced(word: str, current: str) -> None:
    assert current_option(word) == current


def test_an_old_name_warns_and_another_is_none() -> None:
    get = old_names("ldl.heads")
    with pytest.warns(DeprecationWarning, match="ldl.heads.MILBoost moved to ldl.bags.milboost.MILBoost"):
        assert get("MILBoost").__module__ == "ldl.bags.milboost"
    with pytest.raises(AttributeError, match="module 'ldl.heads' has no attribute 'Nothing'"):
        get("Nothing")
