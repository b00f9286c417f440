"""Mean token vectors of the package wordllama."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("wordllama")

from ldl.data.text.wordllama import WordLlama

TEXTS = ["A kind reply.", "Rain again, and no umbrella!", "naïve café ☂", "", "x"]


@pytest.fixture(scope="module")
def encoder() -> WordLlama:
    return WordLlama()


def test_a_vector_is_the_mean_of_its_tokens_at_unit_scale(encoder: WordLlama) -> None:
    encoded = encoder.encode(TEXTS, 512)
    assert encoded.shape == (5, 256) and encoded.dtype == np.float32
    for text, vector in zip(TEXTS, encoded):
        ids = encoder.tokenizer.encode(text, add_special_tokens=False).ids
        mean = np.zeros(256)
        for token in ids:
            mean += encoder.vectors[token].astype(np.float64) / len(ids)
        expected = mean / np.sqrt(np.square(mean).mean()) if ids else mean
        np.testing.assert_allclose(vector, expected, atol=1e-5)
    np.testing.assert_allclose(np.square(encoded).mean(1), [1, 1, 1, 0, 1], atol=1e-6)


def test_it_agrees_with_the_package(encoder: WordLlama) -> None:
    """The package's own mean of the same tokens, up to its scale."""
    from wordllama.inference import WordLlamaInference

    own = WordLlamaInference(encoder.vectors, type(encoder.tokenizer).from_str(encoder.tokenizer.to_str()))
    vectors = np.asarray(own.embed([text for text in TEXTS if text], norm=True))
    ours = encoder.encode([text for text in TEXTS if text], 512) / 16
    assert (vectors * ours).sum(1) == pytest.approx(np.ones(4), abs=0.02)


def test_long_text_is_cut(encoder: WordLlama) -> None:
    ids = encoder.token_ids(TEXTS)[1]
    assert encoder.count_tokens(TEXTS)[1] == len(ids) > 4
    short = encoder.tokenizer.decode(ids[:4])
    np.testing.assert_allclose(encoder.encode([TEXTS[1]], 4), encoder.encode([short], 4), atol=1e-6)
    assert np.abs(encoder.encode([TEXTS[1]], 4) - encoder.encode([TEXTS[1]], 512)).max() > 0.1
