"""Values of a configuration that no class of ours checks: Lightning dies of them in mid-run, or takes no notice."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from numbers import Real
from typing import Any

from jsonargparse import Namespace

from ldl.errors import LDLError
from ldl.options import Option

RANGES = {
    "seed_everything": Option(least=0, most=2**32 - 1, null="no seed"),
    "trainer.num_nodes": Option(least=1),
    "trainer.max_epochs": Option(least=-1, what="-1 for no end"),
    "trainer.min_epochs": Option(least=0),
    "trainer.max_steps": Option(least=-1, what="-1 for no end"),
    "trainer.min_steps": Option(least=0),
    "trainer.fast_dev_run": Option(least=0),
    "trainer.val_check_interval": Option(above=0, what="batches, or a share of an epoch"),
    "trainer.check_val_every_n_epoch": Option(least=1),
    "trainer.num_sanity_val_steps": Option(least=-1, what="-1 for all"),
    "trainer.log_every_n_steps": Option(least=0, what="0 for none"),
    "trainer.accumulate_grad_batches": Option(least=1),
    "trainer.gradient_clip_val": Option(least=0, what="0 for none"),
    "trainer.reload_dataloaders_every_n_epochs": Option(least=0, what="0 for never"),
}
"""Numbers that Lightning does not check, by their names on the command line."""

CHECKED = ("model.head.", "model.backbone.", "data.")
"""Options of classes that check their ranges themselves (:mod:`ldl.options`)."""

GROUPS = ("trainer", "model", "data", "wandb")


PLACES = {"run_dir", "ckpt_path", "path", "root", "cache_dir", "boxes", "split_list", "weights", "default_root_dir"}
"""Options that name a file or a folder."""


def check_ranges(config: Namespace) -> None:
    """Refuse a number out of its range, one that is not finite, an empty path, and groups of options that hold none.

    Raises:
        LDLError: naming the option, its value and what is accepted.
    """
    for group in GROUPS:
        if isinstance(given := config.get(group), bool | int | float | str | list | None):
            said = "null" if given is None else repr(given)
            raise LDLError(f"{group} is {said}, but it holds options; give them as {group}: {{NAME: VALUE}}")
    if config.get("seed_everything") is True:
        raise LDLError("seed_everything is true; give a number in 0..2^32 - 1, or false for no seed")
    for name, value in _values(config, ""):
        if isinstance(value, str):
            if name.rpartition(".")[2] in PLACES and (not value or "\0" in value):
                raise LDLError(f"{name} is {value!r}, which is no place; name a file or folder, or leave it out")
            continue
        if isinstance(value, float) and not math.isfinite(value) and not name.startswith(CHECKED):
            raise LDLError(f"{name} is {value}, which is no finite number; correct it")
        known = RANGES.get(name)
        if known is not None and not isinstance(value, bool) and not known.accepts(value):
            raise LDLError(f"{name} {value!r} must be {known.range}{known.what and f', {known.what}'}")


def _values(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All numbers and texts of a configuration with their names; what stands in a list has the list's."""
    if isinstance(value, Namespace):
        value = vars(value)
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _values(part, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _values(part, name)
    elif isinstance(value, Real | str):
        yield name.replace(".init_args", ""), value
