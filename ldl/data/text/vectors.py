"""The vectors of texts, encoded once: kept in memory, and by slow encoders in a file too."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from ldl.checkpoint import replacing
from ldl.data.cache import cache_root, writable
from ldl.data.text.encoders import find_encoder
from ldl.data.text.options import TextOptions

CACHED_LISTS = 4
"""Lists of texts whose vectors stay in memory, such as the columns of a table in all folds of a cross-validation."""


def text_vectors(texts: Sequence[str], options: TextOptions) -> np.ndarray:
    """Return the vectors (N, D) of texts, float32; a text without tokens, such as an empty one, has the zero vector.

    Raises:
        LDLError: There is no such encoder, or the cache cannot be written.
    """
    return _vectors(tuple(texts), options)


@lru_cache(CACHED_LISTS)
def _vectors(texts: tuple[str, ...], options: TextOptions) -> np.ndarray:
    encoder = find_encoder(options.encoder)
    is_stored = encoder.is_slow and bool(texts)
    vectors = _from_file(texts, options) if is_stored else encoder.encode(texts, options.tokens)
    vectors.flags.writeable = False
    return vectors


def _from_file(texts: tuple[str, ...], options: TextOptions) -> np.ndarray:
    """Return vectors from a file of the cache, which is written if it is absent."""
    file = cache_root() / "text" / f"{_key(texts, options)}.npy"
    with writable(file.parent, file.stem):
        if not file.is_file():
            with replacing(file) as stream:
                np.save(stream, find_encoder(options.encoder).encode(texts, options.tokens))
        return np.load(file, allow_pickle=False)


def _key(texts: tuple[str, ...], options: TextOptions) -> str:
    """Return a key of the texts and of everything that their vectors depend on."""
    digest = hashlib.sha256(repr((*options, _files(Path(options.encoder)))).encode())
    for text in texts:
        content = text.encode()
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()[:20]


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of the files of a model in a folder."""
    files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
    return [(str(file.relative_to(folder)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]


def token_limit(options: TextOptions) -> int:
    """Return the number of tokens after which a text is cut, by the option or by the encoder. Raises LDLError."""
    return min(options.tokens, find_encoder(options.encoder).longest or options.tokens)


def count_cut(texts: Sequence[str], options: TextOptions) -> int:
    """Return how many texts have more tokens than are read. Raises LDLError for an unknown encoder."""
    limit = token_limit(options)
    # A token takes a byte at least, and encoders add up to two tokens.
    long = [text for text in texts if len(text.encode()) + 2 > limit]
    return int((find_encoder(options.encoder).count_tokens(long) > limit).sum()) if long else 0
