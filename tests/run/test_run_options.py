"""Numbers that Lightning takes without a word, or fails on in the middle of a run."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest
from jsonargparse import Namespace

from ldl.command.command_line import parse_anew
from ldl.errors import LDLError
from ldl.run.run_options import RANGES, check_ranges


def configuration(name: str, value: Any) -> Namespace:
    config = Namespace(seed_everything=0, trainer=Namespace(), model=Namespace())
    config[name] = value
    return config


@pytest.mark.parametrize("name", RANGES)
def test_numbers_out_of_range_are_named(name: str) -> None:
    known = RANGES[name]
    first = known.least if known.least is not None else 1
    for good in (None, False, first, first + 1, "00:01:00:00"):
        check_ranges(configuration(name, good))
    for bad in (-2, math.nan, -math.inf, *([2**32] if known.most else [])):
        with pytest.raises(LDLError, match=f"^{re.escape(f'{name} {bad!r} must be {known.range}')}"):
            check_ranges(configuration(name, bad))


@pytest.mark.parametrize("given", ["model: null", "trainer: [1]", "model: 7"])
def test_groups_hold_options(given: str) -> None:
    group = given.partition(":")[0]
    with pytest.raises(LDLError, match=f"^{group} is .*, but holds options; write {group}: {{NAME: VALUE}}"):
        parse_anew(["-c", f"{given}\n"])


def test_a_run_can_be_repeated() -> None:
    with pytest.raises(LDLError, match="seed_everything is true, so no run could be repeated"):
        check_ranges(configuration("seed_everything", True))
