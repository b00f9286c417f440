"""Entries of the cache are complete, keyed by the state of files, and made again where an earlier run failed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from ldl.data import cache
from ldl.data.cache import cache_root, cached_folder, files_key, retried, writable
from ldl.errors import LDLError


def test_the_nearest_setting_names_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LDL_CACHE", "elsewhere")
    assert cache_root("given") == Path("given") and cache_root() == Path("elsewhere")
    monkeypatch.delenv("LDL_CACHE")
    assert cache_root() == Path.home() / ".cache" / "ldl"


def test_a_key_depends_on_the_time_of_a_file_and_on_how_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    first = files_key([file], "text")
    assert files_key([file], "text") == first != files_key([file], "numbers")
    os.utime(file, (1, 1))
    assert files_key([file], "text") != first


def test_a_folder_is_made_once_and_half_of_it_never_stays(tmp_path: Path) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError

    def make(folder: Path) -> None:
        (folder / "whole").touch()

    with pytest.raises(RuntimeError):
        cached_folder(tmp_path / "a", fail, "writing")
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    assert cached_folder(tmp_path / "a", make, "writing") == tmp_path / "a"
    assert [path.name for path in cached_folder(tmp_path / "a", fail, "writing").iterdir()] == ["whole"]


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    message = r"the cache .*file cannot be written: .*; set data.cache_dir or LDL_CACHE"
    with pytest.raises(LDLError, match=message), writable(tmp_path / "file", "a"):
        pass


@pytest.mark.parametrize(("earlier", "again"), [(True, [1]), (False, [])])
def test_a_later_run_tries_failed_images_again(
    earlier: bool, again: Sequence[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[list[int]] = []

    def make(rows: Sequence[int]) -> bytes:
        tried.append(list(rows))
        return b"1"

    for begun in (0.0, 2.0**40 if earlier else 0.0):
        monkeypatch.setattr(cache, "BEGUN", begun)
        with retried(tmp_path / "failed", 3, make, lambda content: [int(content)]):
            pass
    assert tried == [[0, 1, 2], *([again] if again else [])]
