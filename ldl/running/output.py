"""Standard output that may go away, as before ``| head``: what nobody reads is no reason to end a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO


class _Lasting:
    """A stream that from the moment its reader is gone writes nowhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._drop()

    def _drop(self) -> None:
        # The place below the stream, so that what it still holds, and what others write there, goes the same way.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


@contextmanager
def stays_open() -> Iterator[None]:
    """Let standard output and standard error outlive their readers."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (stream and _Lasting(stream) for stream in before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, _Lasting):
                stream.flush()
        sys.stdout, sys.stderr = before
