"""Times that compare: everything in one run, in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Seconds(NamedTuple):
    """Of the clock and of the processor; the latter hardly minds other work on the machine."""

    clock: float
    processor: float


def seconds(work: Callable[[], object], per: float = 1) -> Seconds:
    """How long one call takes, divided by ``per``, such as the queries that it answers."""
    clock, processor = time.perf_counter(), time.process_time()
    work()
    return Seconds((time.perf_counter() - clock) / per, (time.process_time() - processor) / per)


def take_turns(names: Iterable[K], rounds: int, measure: Callable[[K, int], T]) -> dict[K, list[T]]:
    """``measure(name, round)`` of every name in every round; odd rounds go backwards, so that none is always first."""
    measured: dict[K, list[T]] = {name: [] for name in names}
    for turn in range(rounds):
        for name in list(measured) if turn % 2 == 0 else reversed(measured):
            measured[name].append(measure(name, turn))
    return measured
