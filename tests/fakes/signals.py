"""A callback that sends this process a signal at a chosen moment."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytorch_lightning as pl


class Told(pl.Callback):
    """Args: the hook at which, its how many-th call, the signal, the only rank that gets it, or -1 for all, and a file
    that is made then, with which nobody is told again.
    """

    def __init__(
        self, hook: str = "on_train_batch_start", call: int = 1, number: int = 15, rank: int = -1, once: str = ""
    ) -> None:
        self.calls_left = call
        self.number = number
        self.rank, self.once = rank, once
        setattr(self, hook, self._count)

    def _count(self, trainer: pl.Trainer, *args: Any) -> None:
        self.calls_left -= not trainer.sanity_checking
        if self.calls_left == 0 and self.rank in (-1, trainer.global_rank):
            if self.once:
                if Path(self.once).exists():
                    return
                Path(self.once).touch()
            os.kill(os.getpid(), self.number)


def told(hook: str, call: int = 1, number: int = signal.SIGTERM, rank: int = -1, once: Path | str = "") -> list[str]:
    """The options with which a run is told."""
    arguments = {"hook": hook, "call": call, "number": int(number), "rank": rank, "once": str(once)}
    return ["--trainer.callbacks", json.dumps([{"class_path": "fakes.signals.Told", "init_args": arguments}])]
