"""Progress bars for work without batches, and the places where a signal stops work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")


class Stopped(BaseException):
    """A signal has stopped the run. This is no ``Exception``, so that no handler takes it for a failure."""


class Stop:
    """Whether a signal has stopped the run.

    Work queries this object where it can stop. An exception from the signal handler could come anywhere, also in
    compiled code, which would crash.

    Attributes:
        signal: Number of the signal that this process received, or 0.
        agreed: Whether any process had received one when the last batch began.
        trains: Whether the training loop runs, which stops only at the end of a batch.
        leaves: Whether the run is ending.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start a run without a signal."""
        self.signal = 0
        self.agreed = self.trains = self.leaves = False

    def leave(self) -> None:
        """Raise Stopped if a signal has come and the training loop does not run."""
        if self.signal and not self.trains:
            self.leaves = True
            raise Stopped


stop = Stop()
"""State of this process."""


def track(items: Iterable[T], total: int, description: str, show: bool) -> Iterator[T]:
    """Yield ``total`` items; if ``show``, with a progress bar named ``description``."""
    items = _until_stopped(items)
    if not show:
        yield from items
        return
    parts = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*parts, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        yield from progress.track(items, total, description=description)


def _until_stopped(items: Iterable[T]) -> Iterator[T]:
    for item in items:
        stop.leave()
        yield item
