"""Text as vectors: encoders of columns of text, and the cache of their vectors."""

from __future__ import annotations

from ldl.data.text.encoders import USUAL_TEXT, TextEncoder, TextOptions, find_encoder
from ldl.data.text.vectors import count_cut, text_vectors

__all__ = ["USUAL_TEXT", "TextEncoder", "TextOptions", "count_cut", "find_encoder", "text_vectors"]
