"""A progress bar over work that is not made of batches, and where work may be left that is told to end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")


class Stopped(BaseException):
    """The run was told to end. It is no ``Exception``, so that nothing takes it for a failure."""


class Stop:
    """Whether the run was told to end, by a signal.

    Work looks here where it may be left: an exception from within the handler would come anywhere, also inside compiled
    code, which does not survive it.

    Attributes:
        signal: Number of the signal that this process got, or 0.
        agreed: Whether any process had got one when the last batch began.
        trains: Whether the training loop runs, which alone is left at the end of a batch.
        leaves: Whether the run is on its way out.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin a run that nobody has told to end."""
        self.signal = 0
        self.agreed = self.trains = self.leaves = False

    def leave(self) -> None:
        """Raise Stopped here where the run was told to end, and does not train."""
        if self.signal and not self.trains:
            self.leaves = True
            raise Stopped


stop = Stop()
"""That of this process."""


def track(items: Iterable[T], total: int, what: str, show: bool) -> Iterator[T]:
    """Yield the items, of which there are ``total``; if ``show``, with a bar behind the words ``what``."""
    items = _till_told(items)
    if not show:
        yield from items
        return
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*parts, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        yield from progress.track(items, total, description=what)


def _till_told(items: Iterable[T]) -> Iterator[T]:
    for item in items:
        stop.leave()
        yield item
