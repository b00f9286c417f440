"""Encoders, which turn texts into vectors, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

WORDLLAMA = "wordllama"
UNLIMITED = 2**31 - 1
"""Number of tokens of an encoder that reads any number."""


class TextOptions(NamedTuple):
    """Options of the columns of text of a table.

    Attributes:
        encoder: Name of the encoder; see :func:`find_encoder`.
        tokens: Largest number of tokens of a text; the rest is cut.
    """

    encoder: str = WORDLLAMA
    tokens: int = 512

    @property
    def limit(self) -> int:
        """Number of tokens after which a text is cut, by the option or by the encoder itself."""
        return min(self.tokens, find_encoder(self.encoder).longest)


USUAL_TEXT = TextOptions()
"""The options of a table by default."""


class TextEncoder(Protocol):
    """A frozen model that turns a text into a vector, which depends on the text alone.

    Attributes:
        name: Name of the encoder, by which a checkpoint finds it.
        width: Number of entries D of a vector.
        longest: Largest number of tokens that the encoder itself reads.
        is_slow: Whether vectors are worth a file in the cache.
    """

    name: str
    width: int
    longest: int
    is_slow: bool

    def encode(self, texts: Sequence[str], tokens: int) -> np.ndarray:
        """Return the vectors (N, D) of texts, float32, from their first ``tokens`` tokens, of root mean square 1.

        A text without tokens has the zero vector.
        """
        ...

    def count_tokens(self, texts: Sequence[str]) -> np.ndarray:
        """Return the number of tokens of each whole text, (N,) int64, at most one for each byte and two more."""
        ...


@cache
def find_encoder(name: str) -> TextEncoder:
    """Return the encoder of a name: ``wordllama``, or a model of sentence-transformers by its folder or name.

    Raises:
        LDLError: The package of the encoder is not installed, or there is no such model.
    """
    if name == WORDLLAMA:
        from ldl.data.text.wordllama import WordLlama

        return WordLlama()
    from ldl.data.text.sentences import SentenceModel

    return SentenceModel(name)
