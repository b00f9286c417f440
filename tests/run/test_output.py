"""The output streams of a run, and messages that are hidden."""

from __future__ import annotations

import io
import logging
import os
import sys
import warnings

import pytest

from ldl.run.output import LOGGERS, ignore_broken_pipes, quiet_trainers, silence


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


@pytest.mark.parametrize("full", ["/dev/full"])
def test_a_full_disk_below_standard_output_ends_nothing(full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(full, "w", encoding="ascii") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        with ignore_broken_pipes():
            print("gr\u00fcn", flush=True)
            print("more", flush=True)


def test_output_that_nobody_reads_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(os.fdopen(writer, "wb"), line_buffering=True))
    os.close(reader)
    with ignore_broken_pipes():
        print("epoch 1")
        print("epoch 2")
    sys.stdout.close()
