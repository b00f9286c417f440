"""Jobs and their store: computed once, never half, and again after a loss."""

from __future__ import annotations

import json
import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fakes.inline_executor import run_inline

from ldl.errors import LDLError
from ldl.jobs.store import Job, Result, Store
from ldl.jobs.workers import Workers


def job(**key: Any) -> Job:
    return Job(key, dict)


def compute(store: Store, *numbers: int) -> int:
    """Get results; returns how many were computed."""
    computed: list[int] = []
    for number in numbers:
        key = {"number": number, "kind": ["a"]}
        row = store.get(key, lambda: computed.append(1) or {"square": (number**2,)})  # noqa: B023
        assert row == {**key, "square": [number**2]}
    return len(computed)


def test_results_are_computed_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results"
    store = Store(path)
    assert not path.exists()
    assert compute(store, 1, 2) == 2 and compute(store, 1, 2, 3) == 1
    assert store.find(job(kind=["a"], number=2)) == {"square": [4]} and store.find(job(number=2)) is None
    with pytest.raises(RuntimeError):
        store.get({"number": 4}, _fail)
    assert compute(Store(path), 1, 2, 3) == 0
    assert [row["number"] for row in Store(path).rows] == [1, 2, 3]


def _fail() -> Result:
    raise RuntimeError("stopped")


def test_half_a_file_and_errors_are_computed_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    compute(store, 1, 2)
    store.get({"number": 3, "kind": ["a"]}, lambda: {"error": "no"})
    whole = next(tmp_path.glob("*/results.json"))
    (whole.parent / ".results.json.tmp").write_text(whole.read_text()[:10])
    assert [row["number"] for row in Store(tmp_path).rows] == [1, 2]
    assert compute(Store(tmp_path), 1, 2, 3) == 1


@pytest.mark.parametrize("content", [b'{"number": 1', b"[1]", b"\xff"])
def test_a_damaged_result_is_named(tmp_path: Path, content: bytes) -> None:
    compute(Store(tmp_path), 1)
    path = next(tmp_path.glob("*/results.json"))
    path.write_bytes(content)
    with pytest.raises(LDLError, match=rf"{path} cannot be read: .*; remove it to compute this result again"):
        compute(Store(tmp_path), 1)
    with pytest.raises(LDLError, match=rf"{path} cannot be read"):
        _ = Store(tmp_path).rows


@pytest.mark.parametrize("kills", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_other_processes_compute_missing_results(tmp_path: Path, kills: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow case has real processes, of which one is killed."""

    def square(number: int) -> Result:
        if number == 4 and kills and not (tmp_path / "lost").exists():
            (tmp_path / "lost").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if number < 0:
            raise ArithmeticError(f"no root of {number}")
        return {"square": number**2}

    if not kills:
        run_inline(monkeypatch)
    store, seen = Store(tmp_path), []
    store.get({"number": 1}, lambda: {"square": "as it was"})
    errors = store.fill(
        [Job({"number": number}, partial(square, number)) for number in (1, 2, -3, 4)], Workers(2), seen.append
    )
    assert sorted(result["square"] for result in seen) == [4, 16]
    assert errors == {"number -3": "ArithmeticError: no root of -3"}
    assert store.find(job(number=-3)) == {"error": "ArithmeticError: no root of -3"}
    assert Store(tmp_path).find(job(number=-3)) is None
    assert [row["square"] for row in Store(tmp_path).rows] == ["as it was", 4, 16]
    content = json.loads((tmp_path / job(number=4).folder / "results.json").read_text())
    assert content == {"key": {"number": 4}, "square": 16}


def test_a_job_with_a_name_has_one_result(tmp_path: Path) -> None:
    named = Job({"options": "a", "data": "b"}, lambda: {"square": 4}, "fold 3")
    assert Store(tmp_path).compute(named) == {"square": 4} and (tmp_path / "fold_3" / "results.json").is_file()
    assert Store(tmp_path).find(named) == {"square": 4}
    with pytest.raises(LDLError, match="fold_3 has a result of other data; give another --run_dir, or use the same"):
        Store(tmp_path).find(Job({"options": "a", "data": "c"}, dict, "fold 3"))


def test_a_job_may_write_its_result_itself(tmp_path: Path) -> None:
    """As a fold does, before its charts are drawn."""
    store = Store(tmp_path)
    early = Job({"number": 1}, lambda: store.write(early, {"square": 1}) and {"square": 2})
    assert store.compute(early) == {"square": 1} == Store(tmp_path).find(early)


def test_results_of_version_0_2_0_are_read(tmp_path: Path) -> None:
    """They lay in ``cells``, with the key among the results; that of a fold was ``cell``."""
    key = {"number": 3}
    old = tmp_path / "cells" / job(**key).folder / "results.json"
    old.parent.mkdir(parents=True)
    old.write_text(json.dumps({**key, "square": 9}))
    store = Store(tmp_path / "jobs")
    assert store.get(key, _fail) == {"number": 3, "square": 9} == store.rows[0]
    fold = tmp_path / "fold_0" / "results.json"
    fold.parent.mkdir()
    fold.write_text(json.dumps({"mean": {"kl": 1}, "cell": {"data": "a"}}))
    assert Store(tmp_path).find(Job({"data": "a"}, dict, "fold 0")) == {"mean": {"kl": 1}}
