"""The token vectors of the package wordllama, which are in its wheel, so that they need no network."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ldl.data.text.options import WORDLLAMA
from ldl.errors import LDLError

VECTORS = "weights/l2_supercat_256.safetensors"
TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
LEAST_LENGTH = 1e-15
"""Length that a shorter vector is divided by."""


class WordLlama:
    """The mean, the maximum and the minimum of the token vectors of a text in lower case, (3 * 256,).

    The mean is scaled to unit length. The other two are taken per entry over the token vectors, each at unit length.
    All are multiplied by 16, the square root of 256. The maximum and the minimum keep a single strong word of a long
    text, which a mean hides.

    The 32,000 vectors of 256 entries are those of the package ``wordllama`` (Miller 2024, MIT licence), distilled from
    the input embeddings of large language models. Its own loader, which may use the network, is not called.

    Raises:
        LDLError: The package, or ``tokenizers``, is not installed, or lacks a file.
    """

    name = WORDLLAMA
    longest: int | None = None
    is_slow = False

    def __init__(self) -> None:
        package = importlib.util.find_spec("wordllama")
        if package is None or importlib.util.find_spec("tokenizers") is None:
            raise LDLError("columns of text need the package wordllama: pip install 'ldl[text]'")
        self.folder = Path((package.submodule_search_locations or [""])[0])
        for name in (VECTORS, TOKENIZER):
            if not (self.folder / name).is_file():
                raise LDLError(f"the package wordllama has no file {self.folder / name}: pip install -U 'ldl[text]'")

    @cached_property
    def vectors(self) -> np.ndarray:
        """The vectors of the tokens, (32000, 256) float32."""
        from safetensors.numpy import load_file

        (vectors,) = load_file(self.folder / VECTORS).values()
        return np.asarray(vectors, np.float32)

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer, without padding and truncation."""
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self.folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    @property
    def width(self) -> int:
        """Number of entries of the vector of a text."""
        return 3 * int(self.vectors.shape[1])

    def token_ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the tokens of each text in lower case."""
        # One by one: a batch starts threads, which forked loader processes do not survive.
        return [self.tokenizer.encode(text.lower(), add_special_tokens=False).ids for text in texts]

    def encode(self, texts: Sequence[str], tokens: int) -> np.ndarray:
        """Return the vectors (N, D) of texts; see :class:`ldl.data.text.TextEncoder`."""
        encoded = np.zeros((len(texts), self.width), np.float32)
        for row, ids in enumerate(self.token_ids(texts)):
            if ids:
                encoded[row] = _pool(self.vectors[ids[:tokens]].astype(np.float64))
        return encoded

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of tokens of each text, (N,)."""
        return np.array([len(ids) for ids in self.token_ids(texts)], np.int64)


def _pool(vectors: np.ndarray) -> np.ndarray:
    """Return the vector (3 D,) of a text from those of its tokens (T, D)."""
    units = _at_unit_length(vectors)
    mean = _at_unit_length(vectors.mean(0))
    return vectors.shape[1] ** 0.5 * np.concatenate([mean, units.max(0), units.min(0)])


def _at_unit_length(vectors: np.ndarray) -> np.ndarray:
    """Return vectors (..., D) divided by their lengths."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), LEAST_LENGTH))
