"""Private names of other libraries that ldl depends on; ``tests/command/test_compat.py`` tests what each prevents."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jsonargparse import _common, _typehints


@contextmanager
def replaced_adapt(adapt: Callable[..., Any]) -> Iterator[None]:
    """Replace jsonargparse's ``adapt_typehints``, which converts a value to a type, within the block.

    Args:
        adapt: The replacement. It receives the original first.
    """
    before = _typehints.adapt_typehints
    _typehints.adapt_typehints = lambda *args, **kwargs: adapt(before, *args, **kwargs)
    try:
        yield
    finally:
        _typehints.adapt_typehints = before


@contextmanager
def restored_parsing_settings() -> Iterator[None]:
    """Restore jsonargparse's settings after the block; ``set_parsing_settings`` cannot remove denied paths."""
    before = dict(_common.parsing_settings)
    try:
        yield
    finally:
        _common.parsing_settings.clear()
        _common.parsing_settings.update(before)


@contextmanager
def without_launch_inputs() -> Iterator[None]:
    """Begin a run of wandb without its search for inputs of launch agents, whose import takes seconds.

    If the program has imported the agents already, nothing is replaced, because it may use these inputs.
    """
    from wandb.sdk.wandb_run import Run

    name = "_detect_and_apply_job_inputs"
    before = getattr(Run, name, None)
    if before is None or "wandb.sdk.launch" in sys.modules:
        yield
        return
    setattr(Run, name, lambda self: None)
    try:
        yield
    finally:
        setattr(Run, name, before)
