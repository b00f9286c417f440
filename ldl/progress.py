"""A progress bar over work that is not made of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

T = TypeVar("T")


def track(items: Iterable[T], total: int, what: str, show: bool) -> Iterator[T]:
    """Yield the items, of which there are ``total``; if ``show``, with a bar behind the words ``what``."""
    if not show:
        yield from items
        return
    parts = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*parts, TimeElapsedColumn(), TimeRemainingColumn()) as progress:
        yield from progress.track(items, total, description=what)
