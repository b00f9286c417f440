"""Encoders, which turn texts into vectors, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Protocol

import numpy as np

from ldl.data.text.options import WORDLLAMA
from ldl.data.text.sentences import SentenceModel
from ldl.data.text.wordllama import WordLlama
from ldl.errors import LDLError


class TextEncoder(Protocol):
    """A frozen model that turns a text into a vector, which depends on the text alone.

    Attributes:
        name: Name of the encoder, by which a checkpoint finds it.
        longest: Largest number of tokens that the encoder itself reads; None for any number.
        is_slow: Whether vectors are worth a file in the cache.
    """

    name: str
    longest: int | None
    is_slow: bool

    @property
    def width(self) -> int:
        """Number of entries D of a vector."""
        ...

    def encode(self, texts: Sequence[str], tokens: int) -> np.ndarray:
        """Return the vectors (N, D) of texts, float32, from their first ``tokens`` tokens, with entries of about 1.

        A text without tokens has the zero vector.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of tokens of each whole text, (N,) int64, at most one for each byte and two more."""
        ...


@cache
def find_encoder(name: str) -> TextEncoder:
    """Return the encoder of a name: ``wordllama``, or a model of sentence-transformers by its folder or name.

    A checkpoint may choose the name, so this contacts no server; see :func:`download_encoder`.

    Raises:
        LDLError: The package of the encoder is not installed, or there is no such model on this machine.
    """
    return WordLlama() if name == WORDLLAMA else SentenceModel(name)


def download_encoder(name: str) -> TextEncoder:
    """Return the encoder of a name that a user gives, and download the model if it is absent. Raises LDLError."""
    with suppress(LDLError):
        return find_encoder(name)
    if name != WORDLLAMA:
        SentenceModel(name, download=True)
    return find_encoder(name)
