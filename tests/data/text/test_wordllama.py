"""Pooled token vectors of the package wordllama."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")

from ldl.data.text.wordllama import WordLlama

TEXTS = ["A kind reply.", "Rain again, and no umbrella!", "naïve café ☂", "", "x"]


@pytest.fixture(scope="module")
def encoder() -> WordLlama:
    return WordLlama()


def test_a_vector_is_the_mean_the_maximum_and_the_minimum_of_its_tokens(encoder: WordLlama) -> None:
    encoded = encoder.encode(TEXTS, 512)
    assert encoded.shape == (5, 768) and encoded.dtype == np.float32
    for text, vector in zip(TEXTS, encoded):
        ids = encoder.tokenizer.encode(text.lower(), add_special_tokens=False).ids
        mean, most, least = np.zeros(256), np.full(256, -np.inf), np.full(256, np.inf)
        for token in ids:
            row = encoder.vectors[token].astype(np.float64)
            mean += row / len(ids)
            most = np.maximum(most, row / np.sqrt(np.square(row).sum()))
            least = np.minimum(least, row / np.sqrt(np.square(row).sum()))
        expected = [mean / np.sqrt(np.square(mean).mean()), 16 * most, 16 * least] if ids else [np.zeros(768)]
        np.testing.assert_allclose(vector, np.concatenate(expected), atol=1e-5)
    np.testing.assert_allclose(np.square(encoded[:, :256]).mean(1), [1, 1, 1, 0, 1], atol=1e-6)


def test_case_does_not_count(encoder: WordLlama) -> None:
    upper, lower = encoder.encode(["RAIN again, and no Umbrella!", "rain again, and no umbrella!"], 512)
    np.testing.assert_array_equal(upper, lower)
    assert encoder.count_tokens(["UMBRELLA"]) == encoder.count_tokens(["umbrella"])


def test_its_mean_agrees_with_the_package(encoder: WordLlama) -> None:
    """The package's own mean of the same tokens, up to its scale."""
    from wordllama.inference import WordLlamaInference

    own = WordLlamaInference(encoder.vectors, type(encoder.tokenizer).from_str(encoder.tokenizer.to_str()))
    texts = [text.lower() for text in TEXTS if text]
    vectors = np.asarray(own.embed(texts, norm=True))
    ours = encoder.encode(texts, 512)[:, :256] / 16
    assert (vectors * ours).sum(1) == pytest.approx(np.ones(4), abs=0.02)


def test_long_text_is_cut(encoder: WordLlama) -> None:
    ids = encoder.token_ids(TEXTS)[1]
    assert encoder.count_tokens(TEXTS)[1] == len(ids) > 4
    short = encoder.tokenizer.decode(ids[:4])
    np.testing.assert_allclose(encoder.encode([TEXTS[1]], 4), encoder.encode([short], 4), atol=1e-6)
    assert np.abs(encoder.encode([TEXTS[1]], 4) - encoder.encode([TEXTS[1]], 512)).max() > 0.1
