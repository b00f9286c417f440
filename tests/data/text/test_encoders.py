"""Encoders of text by their names, and what is said where one is absent."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from ldl.data.text import TextOptions, find_encoder, text_vectors
from ldl.errors import LDLError


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    find_encoder.cache_clear()
    yield
    find_encoder.cache_clear()


def test_an_encoder_is_loaded_once() -> None:
    pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")
    assert find_encoder("wordllama") is find_encoder("wordllama")
    assert (find_encoder("wordllama").name, find_encoder("wordllama").width) == ("wordllama", 768)


@pytest.mark.parametrize("package", ["wordllama", "tokenizers"])
def test_a_missing_package_is_one_line(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(LDLError, match=r"^columns of text need the package wordllama: pip install 'ldl\[text\]'$"):
        text_vectors(["warm rain"], TextOptions())


def test_other_encoders_need_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(LDLError, match="data.text_encoder 'mini' is not wordllama.*pip install sentence-transformers"):
        find_encoder("mini")
