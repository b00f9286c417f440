"""Standard output that is full or closed ends no run."""

from __future__ import annotations

import io
import os
import sys

import pytest

from ldl.run.output import stays_open


@pytest.mark.parametrize("full", ["/dev/full"])
def test_a_full_disk_below_standard_output_ends_nothing(full: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(full, "w", encoding="ascii") as stream, monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        with stays_open():
            print("gr\u00fcn", flush=True)
            print("more", flush=True)


def test_output_that_nobody_reads_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(os.fdopen(writer, "wb"), line_buffering=True))
    os.close(reader)
    with stays_open():
        print("epoch 1")
        print("epoch 2")
    sys.stdout.close()
