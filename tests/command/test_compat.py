"""What breaks without each private name of another library that :mod:`ldl.command._compat` holds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from jsonargparse import ArgumentParser, set_parsing_settings
from wandb.sdk.wandb_run import Run

from ldl.command._compat import replaced_adapt, restored_parsing_settings, without_launch_inputs


class Base:
    """A part that options name."""


class First(Base):
    def __init__(self, rate: float = 1.0) -> None:
        self.rate = rate


def parse(*args: str) -> Any:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("--part", type=Base)
    parser.add_argument("--names", type=Sequence[str])
    return parser.parse_args(list(args))


def test_adapt_hands_every_value_with_its_text_and_type_over() -> None:
    seen = []

    def adapt(original: Callable[..., Any], val: Any, typehint: Any, **kwargs: Any) -> Any:
        seen.append((val, kwargs.get("orig_val")))
        return original(val, typehint, **kwargs)

    with replaced_adapt(adapt):
        assert list(parse("--names=[a, b]").names) == ["a", "b"]
    assert (["a", "b"], "[a, b]") in seen


def test_denied_import_paths_stay_denied_without_the_settings() -> None:
    with restored_parsing_settings():
        set_parsing_settings(import_path_denylist=["*"])
        with pytest.raises(Exception, match="not allowed"):
            parse(f"--part={__name__}.First")
    assert parse(f"--part={__name__}.First").part.init_args.rate == 1


def test_runs_of_wandb_look_for_launch_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing the agents for them takes seconds."""
    monkeypatch.delitem(sys.modules, "wandb.sdk.launch", raising=False)
    before = Run._detect_and_apply_job_inputs
    with without_launch_inputs():
        assert Run._detect_and_apply_job_inputs is not before
    assert Run._detect_and_apply_job_inputs is before
