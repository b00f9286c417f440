"""Real files with random damage are read as they are, or refused with LDLError; nothing else, and in no time.

Hypothesis draws the damage anew in every run and prints how to repeat what fails.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
import torch
from bad_inputs.harness import patience, write_table
from fakes.paths import CONFIGS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from test_old_checkpoints import FOLDER, problem

from ldl.command import main
from ldl.data import TabularLDL
from ldl.data.pictures import read_picture
from ldl.errors import LDLError
from ldl.task import Task

RNG = np.random.default_rng(0)
CHECKPOINTS = ["structrf", "costsensitiveforest", "dsna", "ldlf", "milboost", "mslp", "softmax"]


def _arrays() -> dict[str, np.ndarray]:
    return {"features": RNG.normal(size=(12, 3)), "labels": RNG.dirichlet(np.ones(3), 12)}


def _read_table(path: Path) -> None:
    data = TabularLDL(path=str(path), folds=2)
    data.setup()
    assert torch.isfinite(data.columns["target"]).all()


def _read_checkpoint(path: Path) -> None:
    task = Task.load_from_checkpoint(path)
    inputs = problem(path.stem).inputs
    with torch.no_grad():
        task(inputs)


def _read_config(path: Path) -> None:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            main(["-c", str(path), "--data.path", "table.csv", "--print_config"])
        except SystemExit as end:
            if end.code:
                raise LDLError(said.getvalue()) from None


# How a sound file is made, and read.
KINDS: dict[str, tuple[Callable[[Path], Any], Callable[[Path], Any]]] = {
    "table.csv": (write_table, _read_table),
    "table.npz": (lambda path: np.savez(path, **_arrays()), _read_table),
    "table.mat": (lambda path: scipy.io.savemat(path, _arrays()), _read_table),
    "packed.mat": (lambda path: scipy.io.savemat(path, _arrays(), do_compression=True), _read_table),
    "picture.png": (lambda path: Image.fromarray(RNG.integers(0, 255, (9, 9, 3), np.uint8)).save(path), read_picture),
    "picture.jpg": (lambda path: Image.fromarray(RNG.integers(0, 255, (9, 9, 3), np.uint8)).save(path), read_picture),
    "config.yaml": (lambda path: shutil.copy(CONFIGS / "runs" / "tabular" / "ldlf.yaml", path), _read_config),
} | {
    f"{name}.ckpt": (lambda path: shutil.copy(FOLDER / path.name, path), _read_checkpoint) for name in CHECKPOINTS
}  # fmt: skip

DAMAGE = st.lists(
    st.tuples(st.sampled_from(["flip", "set", "cut", "drop", "double", "zero"]), st.floats(0, 1), st.integers(1, 255)),
    min_size=1,
    max_size=4,
)


def _damaged(content: bytes, damage: list[tuple[str, float, int]]) -> bytes:
    for what, where, number in damage:
        place = min(int(where * len(content)), max(len(content) - 1, 0))
        before, at, after = content[:place], content[place : place + 1], content[place + 1 :]
        content = {
            "flip": before + bytes(byte ^ number for byte in at) + after,
            "set": before + bytes([number]) + after,
            "cut": before,
            "drop": before + content[place + number :],
            "double": content[: place + number] + content[place:],
            "zero": before + bytes(number) + content[place + number :],
        }[what]
    return content


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, marks=[] if kind in ("table.csv", "picture.png", "ldlf.ckpt") else [pytest.mark.slow])
        for kind in KINDS
    ],
)
def test_damage_is_read_or_refused(kind: str, tmp_path: Path) -> None:
    make, read = KINDS[kind]
    sound = tmp_path / kind
    make(sound)
    content = sound.read_bytes()
    read(sound)

    @settings(max_examples=20, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck))
    @given(DAMAGE)
    def check(damage: list[tuple[str, float, int]]) -> None:
        sound.write_bytes(_damaged(content, damage))
        try:
            with patience():
                read(sound)
        except LDLError as error:
            assert len(str(error)) < 600

    check()


@pytest.mark.slow
def test_tensors_of_a_checkpoint_are_what_is_damaged(tmp_path: Path) -> None:
    """Most damage is found by the sums of the archive; here the archive is sound, and its numbers are not."""
    for name in CHECKPOINTS:
        with zipfile.ZipFile(FOLDER / f"{name}.ckpt") as archive:
            members = {member: archive.read(member) for member in archive.namelist()}
        for draw in range(15):
            _one(name, dict(members), draw, tmp_path / f"{name}.ckpt")


def _one(name: str, members: dict[str, bytes], draw: int, path: Path) -> None:
    rng = np.random.default_rng([draw, len(name)])
    data = [member for member in members if "/data/" in member and members[member]]
    member = data[rng.integers(len(data))]
    content = bytearray(members[member])
    for place in rng.integers(len(content), size=rng.integers(1, 6)):
        content[place] = rng.integers(256)
    members[member] = bytes(content)
    with zipfile.ZipFile(path, "w") as archive:
        for inner, bytes_ in members.items():
            archive.writestr(inner, bytes_)
    try:
        with patience():
            _read_checkpoint(path)
    except LDLError as error:
        assert len(str(error)) < 600
