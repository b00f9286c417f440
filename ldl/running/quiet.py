"""Messages of other libraries that a user of the command line can do nothing about."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

WARNINGS = (
    r".*isinstance\(treespec, LeafSpec\).*",  # pytorch-lightning 2.6 against torch 2.15, to be mended there
    r"Experiment logs directory .* exists and is not empty",  # our config.yaml lies there already
    r"Checkpoint directory .* exists and is not empty",  # of the run that goes on, or is begun anew, as asked
    r"You have overridden `on_before_batch_transfer`",  # Task means to
    r"Total length of `list` across ranks is zero",  # no validation part, as configured
    r"You are using a custom batch sampler",  # ours has no drop_last to correct
    r"Found \d+ module\(s\) in eval mode at the start of training",  # frozen layers, as configured
    r"The dirpath has changed",  # another run tests or predicts with the checkpoint
    r".*does not have many workers",  # data in memory are faster without
    r"Using `DistributedSampler` with the dataloaders",  # ours deals every row once
    r"It is recommended to use `self.log.*sync_dist=True",  # measured of all rows: equal in all processes
    r"It is recommended to use .* on single device",  # because of that sampler, which we do not use
)
LOG_LINES = (
    "litlogger",
    "litmodels",
    "estimate number of stepping batches",
    "Seed set to",  # 0, unless configured
    "GPU available",  # the run's first line says what is used
    "TPU available",
    "LOCAL_RANK: ",
    "`Trainer.fit` stopped: `max_epochs",  # as configured
    "Restoring states from the checkpoint",  # the run's second line says so
    "Restored all states from the checkpoint",
    "Loaded model weights from the checkpoint",
    "will override existing callbacks passed to Trainer",
)


def silence() -> None:
    """Leave them out. Every other warning is a line, without the place in the code that Python adds."""
    warnings.formatwarning = lambda message, *place, **line: f"warning: {' '.join(str(message).split())}\n"
    for message in WARNINGS:
        warnings.filterwarnings("ignore", message=message)
    for name in ("pytorch_lightning", "lightning_fabric"):
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(_wanted)


@contextmanager
def quiet_trainers() -> Iterator[None]:
    """Without what Lightning says about every one of many trainers."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before):
            logger.setLevel(level)


def _wanted(record: logging.LogRecord) -> bool:
    return not any(line in record.getMessage() for line in LOG_LINES)
