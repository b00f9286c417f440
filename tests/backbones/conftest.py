"""What tests of backbones share that keep something of the pictures of a set."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_faces import utkface


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve made-up faces."""
    return utkface(tmp_path_factory.mktemp("data"), 12)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("LDL_CACHE", str(tmp_path))
    return tmp_path
