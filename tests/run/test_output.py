"""The output streams of a run, and messages that are hidden."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings

import pytest

from ldl.run.output import LOGGERS, ignore_broken_pipes, quiet_trainers, silence


def test_a_closed_pipe_ends_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        with ignore_broken_pipes():
            for _ in range(2):
                print("x" * 10**5, flush=True)
        assert sys.stdout is stream


def test_letters_that_an_encoding_lacks_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    with ignore_broken_pipes():
        print("é", flush=True)
    assert raw.getvalue() == b"\\xe9\n"


def test_trainers_are_quiet_within_the_block() -> None:
    levels = [logging.getLogger(name).level for name in LOGGERS]
    with quiet_trainers():
        assert all(logging.getLogger(name).level == logging.ERROR for name in LOGGERS)
    assert [logging.getLogger(name).level for name in LOGGERS] == levels


def test_a_warning_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)
    with warnings.catch_warnings():
        silence()
        assert warnings.formatwarning("a\n  b", UserWarning, "file.py", 1) == "warning: a b\n"
        warnings.warn("The dirpath has changed from a to b", stacklevel=1)  # hidden, and thus no error
