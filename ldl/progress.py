"""A progress bar over work that is not made of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")


def track(items: Iterable[T], total: int, what: str, show: bool) -> Iterator[T]:
    """Yield the items, with a bar while they come if ``show``.

    Args:
        items: What is worked on.
        total: How many there are.
        what: The words before the bar.
        show: Whether there is a bar at all.
    """
    if not show:
        yield from items
        return
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*parts, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            yield item
            progress.advance(task)
