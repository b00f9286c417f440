"""A model of sentence-transformers as an encoder: a tiny one with random weights, saved to a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sentence_transformers", reason="pip install sentence-transformers")

from ldl.data.text import TextOptions, count_cut, download_encoder, find_encoder, text_vectors, vectors
from ldl.errors import LDLError

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "rain", "and", "sun", "snow"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from sentence_transformers import SentenceTransformer, models
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("model")
    (folder / "vocab.txt").write_text("\n".join(WORDS))
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    BertModel(BertConfig(vocab_size=len(WORDS), **sizes)).save_pretrained(folder / "bert")
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder / "bert")
    words = models.Transformer(str(folder / "bert"), max_seq_length=16)
    SentenceTransformer(modules=[words, models.Pooling(8)], device="cpu").save(str(folder / "saved"))
    return folder / "saved"


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LDL_CACHE", str(tmp_path))
    vectors._vectors.cache_clear()
    yield
    find_encoder.cache_clear()


def test_vectors_are_those_of_the_package(model: Path, tmp_path: Path) -> None:
    from sentence_transformers import SentenceTransformer

    texts = ["rain and sun", "snow", ""]
    encoded = text_vectors(texts, TextOptions(str(model), 512))
    own = SentenceTransformer(str(model), device="cpu").encode(texts[:2], normalize_embeddings=True)
    np.testing.assert_allclose(encoded[:2], own * 8**0.5, atol=1e-5)
    assert encoded.shape == (3, 8) and encoded.dtype == np.float32 and not encoded[2].any()
    assert len([*(tmp_path / "text").glob("*.npy")]) == 1


def test_tokens_are_limited(model: Path) -> None:
    options = TextOptions(str(model), 4)  # [CLS], two words, [SEP]
    short, long = text_vectors(["rain and", "rain and sun and snow"], options)
    np.testing.assert_allclose(short, long, atol=1e-5)
    assert count_cut(["rain and", "rain and sun and snow"], options) == 1


def test_the_model_limits_tokens_too(model: Path) -> None:
    assert count_cut(["rain " * 20, "snow"], TextOptions(str(model), 512)) == 1


def test_a_folder_without_a_model_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="data.text_encoder '.*' cannot be loaded: .*; give wordllama, or") as error:
        find_encoder(str(tmp_path / "nothing"))
    assert "\n" not in str(error.value)


def test_a_name_from_a_checkpoint_contacts_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    contacted = []
    monkeypatch.setattr("socket.socket.connect", lambda _, address: contacted.append(address))
    monkeypatch.setattr("socket.getaddrinfo", lambda *address, **options: contacted.append(address) or [])
    with pytest.raises(LDLError, match="data.text_encoder 'nobody/nothing' cannot be loaded"):
        find_encoder("nobody/nothing")
    assert not contacted


def test_a_model_of_this_machine_is_not_downloaded(model: Path) -> None:
    assert download_encoder(str(model)) is find_encoder(str(model))
