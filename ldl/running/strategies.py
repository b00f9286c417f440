"""Ways of Lightning to spread a run that this framework does not take, each with its reason."""

from __future__ import annotations

from typing import Any

from ldl.errors import LDLError

COPIES = "copies this process with its model, whose metrics cannot be copied"
PARTS = "keeps parts of the weights on each process, where leaf updates and exact checkpoints need all of them"
TPUS = "runs on TPUs, whose compiled steps cannot follow batches and buffers that change their sizes"
REFUSED = {
    "xla": TPUS,
    "tpu": TPUS,
    "fsdp": PARTS,
    "deepspeed": PARTS,
    "modelparallel": PARTS,
    "spawn": COPIES,
    "fork": COPIES,
    "notebook": COPIES,
}
"""Reasons, by a part of the strategy's name or of its class's; the first that is found counts."""


def check_strategy(strategy: Any) -> None:
    """Raise LDLError for a strategy, by name or as an object, that does not keep to the law of several processes."""
    given = strategy if isinstance(strategy, str) else type(strategy).__name__
    name = f"{given}{getattr(strategy, '_start_method', '')}".lower().replace("_", "")
    for part, reason in REFUSED.items():
        if part in name:
            raise LDLError(f"trainer.strategy {given!r} {reason}; take ddp, which starts processes of their own")
