"""Models of the package sentence-transformers as encoders of text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ldl.errors import explaining


class SentenceModel:
    """A sentence embedding, at unit length times the square root of its width.

    Args:
        name: Folder of a model of sentence-transformers, or its name on the Hugging Face Hub.
        download: Whether to download a model that is not in the cache of the hub.

    Raises:
        LDLError: The package is not installed, or the model cannot be loaded.
    """

    is_slow = True

    def __init__(self, name: str, download: bool = False) -> None:
        self.name = name
        needed = f"data.text_encoder {name!r} is not wordllama, and other encoders need sentence-transformers"
        with explaining(needed, "pip install sentence-transformers", (ImportError,)):
            from sentence_transformers import SentenceTransformer
        advice = "give wordllama, or the folder or name of a model of sentence-transformers"
        with explaining(f"data.text_encoder {name!r} cannot be loaded", advice):
            options = {"device": "cpu", "trust_remote_code": False, "local_files_only": not download}
            self.model: Any = SentenceTransformer(name, **options)
        self.longest: int | None = self.model.max_seq_length

    @cached_property
    def width(self) -> int:
        """Number of entries of a vector."""
        return int(self.model.encode([""], convert_to_numpy=True).shape[1])

    def encode(self, texts: Sequence[str], tokens: int) -> np.ndarray:
        """Return the vectors (N, D) of texts; see :class:`ldl.data.text.TextEncoder`."""
        self.model.max_seq_length = min(tokens, self.longest or tokens)
        encoded = np.zeros((len(texts), self.width), np.float32)
        rows = [row for row, text in enumerate(texts) if text]
        if rows:
            options = {"convert_to_numpy": True, "show_progress_bar": False, "normalize_embeddings": True}
            encoded[rows] = self.model.encode([texts[row] for row in rows], **options) * self.width**0.5
        return encoded

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of tokens of each text, (N,)."""
        return np.array([len(self.model.tokenizer(text)["input_ids"]) for text in texts], np.int64)
