"""How columns of text are read: the options of a table, and what a checkpoint holds of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

WORDLLAMA = "wordllama"
"""Name of the encoder by default."""


class TextOptions(NamedTuple):
    """Options of the columns of text of a table.

    Attributes:
        encoder: Name of the encoder (:func:`ldl.data.text.find_encoder`).
        tokens: Largest number of tokens of a text; the rest is cut.
    """

    encoder: str = WORDLLAMA
    tokens: int = 512


USUAL_TEXT = TextOptions()
"""The options of a table by default."""


@dataclass(frozen=True)
class TextEncoding:
    """How a column of text becomes features.

    Attributes:
        encoder: Name of the encoder.
        tokens: Largest number of tokens of a text.
        width: Number of features.
    """

    encoder: str
    tokens: int
    width: int

    @property
    def options(self) -> TextOptions:
        """Encoder and tokens."""
        return TextOptions(self.encoder, self.tokens)
