"""Failed steps are found without a wait for the device."""

from __future__ import annotations

import pytest
import torch

from ldl.collective import Collective
from ldl.errors import SharedError
from ldl.validation.finite import DeferredChecks, Flag


def _said(watch: DeferredChecks) -> str:
    bad = watch.first_failure()
    return bad.explain() if bad else ""


def test_flags_that_arrive_later_are_read_a_batch_later_or_where_no_batch_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Flag, "is_late", True)
    watch = DeferredChecks()
    watch.note(torch.tensor(True), lambda: "nothing")
    watch.note(torch.tensor(False), lambda: "first")
    assert watch.first_failure() is None
    watch.note(torch.tensor(False), lambda: "second")
    assert _said(watch) == "first"
    watch.note(torch.tensor(False), lambda: "third")
    with pytest.raises(SharedError, match="second"):
        watch.check_finite(torch.device("cpu"), Collective())
    assert watch.first_failure() is None


@pytest.mark.gpu
def test_a_step_on_a_gpu_that_went_wrong_ends_the_run_one_batch_later() -> None:
    device, watch = torch.device("cuda"), DeferredChecks()
    watch.note(torch.tensor(False, device=device), lambda: "first")
    assert watch.first_failure() is None
    watch.note(torch.tensor(False, device=device), lambda: "second")
    assert _said(watch) == "first" and _said(watch) == "second" and watch.first_failure() is None
