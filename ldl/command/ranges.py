"""Numbers that neither a type nor Lightning checks, and that a run would ignore or fail on after it has begun."""

from __future__ import annotations

from jsonargparse import Namespace

from ldl.errors import LDLError
from ldl.options import Option

RANGES = {
    "seed_everything": Option(least=0, most=2**32 - 1),
    "jobs": Option(least=1),
    "trainer.num_nodes": Option(least=1),
    "trainer.max_epochs": Option(least=-1, what="-1 for no end"),
    "trainer.min_epochs": Option(least=0),
    "trainer.max_steps": Option(least=-1, what="-1 for no end"),
    "trainer.min_steps": Option(least=0),
    "trainer.val_check_interval": Option(above=0, what="batches, or a share of an epoch"),
    "trainer.check_val_every_n_epoch": Option(least=1),
    "trainer.num_sanity_val_steps": Option(least=-1, what="-1 for all"),
    "trainer.log_every_n_steps": Option(least=0, what="0 for none"),
    "trainer.accumulate_grad_batches": Option(least=1),
    "trainer.gradient_clip_val": Option(least=0, what="0 for none"),
}
"""Ranges of numbers by their names on the command line; None and words are for Lightning."""


def check_ranges(config: Namespace) -> None:
    """Raise LDLError for a number out of its range, or a random seed."""
    if config.seed_everything is True:
        raise LDLError("seed_everything is true, so no run could be repeated; give a number, or false for no seed")
    for name, known in RANGES.items():
        value = config.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and not known.accepts(value):
            raise LDLError(f"{name} {value!r} must be {known.range}{known.what and f', {known.what}'}")
