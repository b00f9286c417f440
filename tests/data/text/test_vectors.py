"""Vectors of texts are computed once, and how many texts are cut is counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ldl.data.text import TextOptions, count_cut, text_vectors, vectors


class Letters:
    """Counts the letters a, b and c; a token is a letter."""

    name, width, longest, is_slow = "letters", 3, 6, True

    def __init__(self) -> None:
        self.calls = 0

    def encode(self, texts: Sequence[str], tokens: int) -> np.ndarray:
        self.calls += 1
        return np.array([[text[:tokens].count(letter) for letter in "abc"] for text in texts], np.float32)

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([len(text) for text in texts])


@pytest.fixture
def letters(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Letters:
    encoder = Letters()
    monkeypatch.setattr(vectors, "find_encoder", lambda name: encoder)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path))
    vectors._vectors.cache_clear()
    return encoder


def test_texts_are_encoded_once(letters: Letters, tmp_path: Path) -> None:
    options = TextOptions("letters", 4)
    first = text_vectors(["abba", "abccc", ""], options)
    np.testing.assert_array_equal(first, [[2, 2, 0], [1, 1, 2], [0, 0, 0]])
    assert text_vectors(["abba", "abccc", ""], options) is first and letters.calls == 1
    assert not first.flags.writeable
    vectors._vectors.cache_clear()  # as in another process
    np.testing.assert_array_equal(text_vectors(["abba", "abccc", ""], options), first)
    assert letters.calls == 1 and len([*(tmp_path / "text").glob("*.npy")]) == 1


def test_other_texts_tokens_and_encoders_are_encoded_anew(letters: Letters, tmp_path: Path) -> None:
    text_vectors(["ab", "c"], TextOptions("letters", 4))
    for texts, options in (
        (["a", "bc"], TextOptions("letters", 4)),
        (["ab", "c"], TextOptions("letters", 1)),
        (["ab", "c"], TextOptions("others", 4)),
    ):
        text_vectors(texts, options)
    assert letters.calls == 4 and len([*(tmp_path / "text").glob("*.npy")]) == 4


def test_a_fast_encoder_writes_no_file(letters: Letters, tmp_path: Path) -> None:
    letters.is_slow = False
    text_vectors(["ab"], TextOptions("letters", 4))
    assert not (tmp_path / "text").exists()


def test_the_model_of_a_folder_may_change(letters: Letters, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for content in ("1", "22"):
        (model / "weights").write_text(content)
        vectors._vectors.cache_clear()
        text_vectors(["ab"], TextOptions(str(model), 4))
    assert letters.calls == 2


def test_cut_texts_are_counted(letters: Letters) -> None:
    assert count_cut(["abc", "abcc", "abccc", ""], TextOptions("letters", 4)) == 1
    assert count_cut(["abc"], TextOptions("letters", 2)) == 1
    assert count_cut([], TextOptions("letters", 2)) == 0
    assert count_cut(["abcabc", "abcabca"], TextOptions("letters", 100)) == 1  # the encoder reads six
