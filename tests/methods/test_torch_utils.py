"""Helpers around torch: one thread with nesting and concurrency, and eigenvectors where MKL fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from ldl.methods.torch_utils import eigh, one_thread


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_one_within_another_leaves_it_as_it_was() -> None:
    with one_thread() as before:
        with one_thread() as inner:
            assert (before, inner, torch.get_num_threads()) == (3, 1, 1)
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 3


@pytest.mark.usefixtures("three_threads")
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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_does_not_converge_is_found_elsewhere(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = torch.zeros(3, 20, 6, dtype=dtype)
    rows[:, 3:11] = torch.randn(3, 8, 6, generator=torch.Generator().manual_seed(0), dtype=dtype)
    gram = rows @ rows.mT
    expected = torch.linalg.eigh(gram)
    assert all(map(torch.equal, eigh(gram), expected))

    def fails(matrices: Tensor) -> tuple[Tensor, Tensor]:
        raise torch.linalg.LinAlgError("The algorithm failed to converge")

    monkeypatch.setattr(torch.linalg, "eigh", fails)
    values, vectors = eigh(gram)
    assert values.dtype == vectors.dtype == dtype
    torch.testing.assert_close(values, expected[0], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(vectors @ values.diag_embed() @ vectors.mT, gram, atol=1e-4, rtol=1e-4)
