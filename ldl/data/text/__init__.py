"""Text as vectors: encoders of columns of text, and the cache of their vectors."""

from __future__ import annotations

from ldl.data.text.encoders import TextEncoder, download_encoder, find_encoder
from ldl.data.text.options import USUAL_TEXT, TextEncoding, TextOptions
from ldl.data.text.vectors import count_cut, text_vectors, token_limit

__all__ = [
    "USUAL_TEXT",
    "TextEncoder",
    "TextEncoding",
    "TextOptions",
    "count_cut",
    "download_encoder",
    "find_encoder",
    "text_vectors",
    "token_limit",
]
