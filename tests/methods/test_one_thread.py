"""One thread for torch: for those within alone, and only as long as they are."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from ldl.methods.one_thread import one_thread


@pytest.fixture(autouse=True)
def _three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def test_one_within_another_leaves_it_as_it_was() -> None:
    with one_thread() as before:
        with one_thread() as inner:
            assert (before, inner, torch.get_num_threads()) == (3, 1, 1)
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


def test_all_threads_of_a_program_have_theirs_back() -> None:
    """The second enters while the first is within, and leaves after it."""
    found: dict[str, list[int]] = {}
    entered, left = threading.Event(), threading.Event()

    def second() -> None:
        with one_thread() as before:
            entered.set()
            left.wait(5)
            found["second"] = [before, torch.get_num_threads()]
        found["second"].append(torch.get_num_threads())

    other = threading.Thread(target=second)
    with one_thread():
        other.start()
        assert entered.wait(5)
    left.set()
    other.join()
    later = threading.Thread(target=lambda: found.update(later=[torch.get_num_threads()]))
    later.start()
    later.join()
    assert found == {"second": [3, 1, 3], "later": [3]} and torch.get_num_threads() == 3
