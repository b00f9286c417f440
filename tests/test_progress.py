"""Work that is told to end, with a bar and without."""

from __future__ import annotations

import signal

import pytest

from ldl.progress import Stopped, stop, track


@pytest.mark.parametrize("show", [False, True])
def test_work_that_is_told_to_end_is_left_before_its_next_item(show: bool) -> None:
    done = []
    try:
        with pytest.raises(Stopped):
            for item in track(range(5), 5, "working", show):
                done.append(item)
                stop.signal = signal.SIGTERM if item == 2 else 0
    finally:
        stop.reset()
    assert done == [0, 1, 2]
