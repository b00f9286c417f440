"""The output streams of a run: they outlive their reader and hide messages that a user cannot act on."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

WARNINGS = (
    r".*isinstance\(treespec, LeafSpec\).*",  # pytorch-lightning 2.6 with torch 2.15
    r"Experiment logs directory .* exists and is not empty",  # it holds config.yaml
    r"Checkpoint directory .* exists and is not empty",  # the run resumes, or starts again as configured
    r"You have overridden `on_before_batch_transfer`",  # Task does so on purpose
    r"Total length of `list` across ranks is zero",  # no validation set, as configured
    r"You are using a custom batch sampler",  # ldl's has no drop_last to correct
    r"Found \d+ module\(s\) in eval mode at the start of training",  # frozen layers, as configured
    r"The dirpath has changed",  # another run tests or predicts with the checkpoint
    r".*does not have many workers",  # data in memory are faster without
    r"Using `DistributedSampler` with the dataloaders",  # ldl's sampler visits every row once
    r"It is recommended to use `self.log.*sync_dist=True",  # metrics of all rows are equal in all processes
    r"It is recommended to use .* on single device",  # the advice concerns DistributedSampler
)
LOG_LINES = (
    "litlogger",
    "litmodels",
    "estimate number of stepping batches",
    "Seed set to",  # 0, unless configured
    "GPU available",  # the run's first line names the device
    "TPU available",
    "LOCAL_RANK: ",
    "`Trainer.fit` stopped: `max_epochs",  # as configured
    "Restoring states from the checkpoint",  # the run's second line names the checkpoint
    "Restored all states from the checkpoint",
    "Loaded model weights from the checkpoint",
    "will override existing callbacks passed to Trainer",
)
LOGGERS = ("pytorch_lightning", "lightning_fabric")


def silence() -> None:
    """Hide ``WARNINGS`` and ``LOG_LINES``, and print every other warning in one line without its place in the code."""
    warnings.formatwarning = lambda message, *place, **line: f"warning: {' '.join(str(message).split())}\n"
    for message in WARNINGS:
        warnings.filterwarnings("ignore", message=message)
    for name in LOGGERS:
        for handler in logging.getLogger(name).handlers:
            handler.addFilter(_is_shown)


def _is_shown(record: logging.LogRecord) -> bool:
    return not any(line in record.getMessage() for line in LOG_LINES)


@contextmanager
def quiet_trainers() -> Iterator[None]:
    """Hide the log lines of Lightning for every trainer, in stages that make many trainers."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before):
            logger.setLevel(level)


class _Lasting:
    """A stream that discards output after its first error, and escapes letters that its encoding lacks."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            try:
                return self._stream.write(text)
            except UnicodeEncodeError as error:
                return self._stream.write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))
        except OSError:
            self._discard()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._discard()

    def _discard(self) -> None:
        # Replacing the descriptor also discards the buffer of the stream, and output of others to the descriptor.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


@contextmanager
def ignore_broken_pipes() -> Iterator[None]:
    """Keep running after the reader of standard output or standard error has gone, as with ``| head``."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and _Lasting(stream) for stream in before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _Lasting):
                stream.flush()
        sys.stdout, sys.stderr = before
