"""Tables, archives and weights that anybody could have made: no code, no endless memory, nothing written elsewhere."""

from __future__ import annotations

import gzip
import os
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import scipy.io
import scipy.sparse
import timm
import torch
from checkpoints.make import FOLDER

from ldl.backbones.timm import Timm
from ldl.data.storage import Storage
from ldl.data.synthetic import read_mnist
from ldl.data.tables.reading import read_table
from ldl.edges.benchmark.ground_truth import read_ground_truth
from ldl.edges.pixel_features import PixelFeatures
from ldl.errors import LDLError
from ldl.validation import archive
from ldl.validation.archive import check_mat

SMALL = "test_resnet"


class Evil:
    """Unpickling it makes a folder."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("PWNED",)


@pytest.fixture(autouse=True)
def nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    yield
    assert not Path("PWNED").exists()


@pytest.fixture
def no_slack(monkeypatch: pytest.MonkeyPatch) -> None:
    """What may unpack to a GB in any case would make slow tests."""
    monkeypatch.setattr(archive, "ALWAYS_ACCEPTED_BYTES", 2**16)


def test_tables_are_not_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", features=np.array([Evil()]), labels=np.ones((1, 1)))
    with pytest.raises(LDLError, match="which only pickle reads"):
        read_table(tmp_path / "a.npz")
    np.savez(tmp_path / "mnist.npz", x_train=np.array([Evil()]), y_train=np.ones(1))
    with pytest.raises(LDLError, match="allow_pickle=False"):
        read_mnist(tmp_path)


@pytest.mark.parametrize("name", ["a.npz", "a.mat", "gt.mat", "mnist.npz"])
def test_bombs_are_not_unpacked(name: str, tmp_path: Path, no_slack: None) -> None:
    path, zeros = tmp_path / name, np.zeros(10**6)
    if name.endswith(".npz"):
        np.savez_compressed(path, features=zeros, labels=zeros, x_train=zeros, y_train=zeros)
    else:
        scipy.io.savemat(path, {"features": zeros, "groundTruth": zeros}, do_compression=True)
    readers = {"gt.mat": read_ground_truth, "mnist.npz": lambda path: read_mnist(path.parent)}
    with pytest.raises(LDLError, match="unpacks to .* or more; give another file"):
        readers.get(name, read_table)(path)


def test_a_sound_file_is_not_a_bomb(tmp_path: Path, no_slack: None) -> None:
    rng = np.random.default_rng(0)
    columns = {"features": rng.normal(size=(400, 30)), "labels": np.full((400, 2), 0.5)}
    scipy.io.savemat(tmp_path / "a.mat", columns, do_compression=True)
    np.savez_compressed(tmp_path / "a.npz", **columns)
    for kind in ("mat", "npz"):
        assert read_table(tmp_path / f"a.{kind}").features.shape == (400, 30)


def test_mat_files_of_version_4_and_of_the_other_byte_order_are_no_bombs(tmp_path: Path, no_slack: None) -> None:
    def element(kind: int, data: bytes) -> bytes:
        return struct.pack(">II", kind, len(data)) + data + bytes(-len(data) % 8)

    columns = {"features": np.random.default_rng(0).normal(size=(400, 30)), "labels": np.full((400, 2), 0.5)}
    scipy.io.savemat(tmp_path / "4.mat", columns, format="4")
    content = b"MATLAB 5.0".ljust(124) + b"\x01\x00MI"
    for name, rows in columns.items():
        parts = (6, struct.pack(">II", 6, 0)), (5, struct.pack(">ii", *rows.shape)), (1, name.encode())
        numbers = element(9, rows.astype(">f8").tobytes("F"))
        content += element(14, b"".join(element(*part) for part in parts) + numbers)
    (tmp_path / "5.mat").write_bytes(content)
    for version in (4, 5):
        np.testing.assert_array_equal(read_table(tmp_path / f"{version}.mat").features, columns["features"])


def test_sparse_matrices_are_bounded(tmp_path: Path) -> None:
    wide = scipy.sparse.coo_matrix(([1.0], ([0], [0])), shape=(2**20, 2**20))
    scipy.io.savemat(tmp_path / "a.mat", {"features": wide, "labels": np.ones((1, 1))})
    with pytest.raises(LDLError, match="1073741824 numbers at most are read"):
        read_table(tmp_path / "a.mat")


@pytest.mark.parametrize(
    ("place", "byte"), [(184, 155), (185, 4), (145, 109), (536, 83), (537, 14), (144, 99), (136, 9), (160, 200)]
)
def test_tags_that_crash_the_reader_of_mat_files_are_refused(place: int, byte: int, tmp_path: Path) -> None:
    """The first five end scipy 1.17 with a segmentation fault: an unknown kind of numbers, a part that is not there."""
    rng, file = np.random.default_rng(0), tmp_path / "a.mat"
    scipy.io.savemat(file, {"features": rng.normal(size=(12, 3)), "labels": rng.dirichlet(np.ones(3), 12)})
    content = bytearray(file.read_bytes())
    content[place] = byte
    file.write_bytes(content)
    with pytest.raises(LDLError, match=r"a\.mat cannot be read as \.mat, it is damaged: "):
        read_table(file)
    with pytest.raises(LDLError, match=r"a\.mat cannot be read as \.mat, it is damaged: "):
        read_ground_truth(file)


@pytest.mark.parametrize("packed", [False, True])
def test_sound_mat_files_are_not_damaged(packed: bool, tmp_path: Path) -> None:
    cells, file = np.empty((2, 2), object), tmp_path / "a.mat"
    cells[:] = [[{"name": "x", "deep": {"er": np.eye(2)}}, "text"], [np.zeros((0, 3)), 1 + 2j]]
    variables = {
        "cells": cells, "sparse": scipy.sparse.eye(4).tocsc(), "complex": np.eye(2) + 1j, "truth": np.eye(2) > 0,
        "small": np.array([[1, 2]], np.uint8), "cube": np.zeros((2, 3, 4), np.float32), "none": np.zeros((0, 0)),
        "structure": np.zeros((0,), [("a", object)]), "features": np.eye(3), "labels": np.eye(3),
    }  # fmt: skip
    scipy.io.savemat(file, variables, do_compression=packed)
    check_mat(file)
    assert read_table(file).features.shape == (3, 3)


def npy(header: str) -> bytes:
    """A .npy file with this header and no numbers."""
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


HEADERS = {
    "brackets": "(" * 9000,
    "signs": "-" * 9000 + "1",
    "huge": "{'descr': '<f8', 'fortran_order': False, 'shape': (3000000000000, 1)}",
    "huger": f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**30},)}}",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-3, -1)}",
    "text": "{'descr': '<U2147483640', 'fortran_order': False, 'shape': (9, 1)}",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1, 1)}",
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("kind", ["folder", "npz", "large npz", "mnist"])
def test_headers_of_npy_are_held_against_the_file(header: str, kind: str, tmp_path: Path) -> None:
    """Numpy takes memory for the shape first, and evaluates the header with a recursive parser."""
    content = npy(HEADERS[header])
    if kind == "folder":
        for name in ("features.npy", "labels.npy"):
            (tmp_path / name).write_bytes(content)
        path, place = tmp_path, "features.npy"
    else:
        path, place = tmp_path / "mnist.npz", r"mnist.npz"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("features", "labels", "x_train", "y_train"):
                archive.writestr(f"{name}.npy", content)
    storage = Storage(0 if kind == "large npz" else 256, str(tmp_path / "cache"))
    words = "which only pickle reads" if header == "objects" else "cannot be read as "
    words = "is not MNIST as Keras has it .x_train, y_train.: .*" if kind == "mnist" else words
    with pytest.raises(LDLError, match=f"{place}.*{words}") as refused:
        read_mnist(tmp_path) if kind == "mnist" else read_table(path, storage=storage)
    assert len(str(refused.value).splitlines()) == 1 and len(str(refused.value)) < 600
    assert not list((tmp_path / "cache").rglob("*.npy"))


def test_parquet_files_are_bounded(tmp_path: Path, no_slack: None) -> None:
    """A column of equal numbers takes a few bytes, however long it is."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for rows, sound in ((2_000_000, False), (1_000, True)):
        table = {"a": np.ones(rows, np.float32), "label:x": np.full(rows, 0.25), "label:y": np.full(rows, 0.75)}
        parquet.write_table(pyarrow.table(table), tmp_path / "a.parquet")
        if sound:
            assert len(read_table(tmp_path / "a.parquet").target) == rows
        else:
            with pytest.raises(LDLError, match=r"a.parquet has \d+ bytes and unpacks to 48000000 or more"):
                read_table(tmp_path / "a.parquet", storage=Storage(1, str(tmp_path / "cache")))
            assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("rows", [np.full((900, 2), 0.2), np.full((900, 2), np.nan), np.ones((3, 2)) / 2])
def test_a_refused_archive_leaves_nothing_in_the_cache(rows: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", features=np.ones((900, 3)), labels=rows, more=np.array([{}]))
    storage = Storage(1e-6, str(tmp_path / "cache"))
    with pytest.raises(LDLError, match=r"^\S*a\.npz: "):
        read_table(tmp_path / "a.npz", storage=storage)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.suffix != ".lock" and path.is_file()]
    np.savez(tmp_path / "a.npz", features=np.ones((900, 3)), labels=np.full((900, 2), 0.5), more=np.array([{}]))
    assert read_table(tmp_path / "a.npz", storage=storage).target.shape == (900, 2)


@pytest.mark.parametrize(("kind", "rows", "columns"), [(0, 2**31 - 1, 2**31 - 1), (51, 2**30, 2**20), (2, 2**30, 3)])
def test_mat_files_of_version_4_are_held_against_the_file(kind: int, rows: int, columns: int, tmp_path: Path) -> None:
    header = struct.pack("<5i", kind, rows, columns, 0, 9) + b"features\0"
    for name, read in (("a.mat", read_table), ("gt.mat", read_ground_truth)):
        (tmp_path / name).write_bytes(header)
        with pytest.raises(LDLError, match=f"{name} .*claims {rows} by {columns} numbers, more than the file has"):
            read(tmp_path / name)


def test_text_is_bounded_below_other_files(tmp_path: Path) -> None:
    """Text takes several times its size in memory."""
    with gzip.open(tmp_path / "a.csv.gz", "wb") as packed:
        packed.write(b"a,label:x,label:y\n" + b"1,0.5,0.5\n" * 10**7)
    with pytest.raises(LDLError, match=r"a.csv.gz unpacks to more than 67108864 bytes; if you trust it, unpack"):
        read_table(tmp_path / "a.csv.gz")


def weights(kind: str, path: Path) -> None:
    state = {name: value.numpy() for name, value in timm.create_model(SMALL).state_dict().items()}
    whole = safetensors.numpy.save(state)
    if kind == "header without end":
        path.write_bytes((2**60).to_bytes(8, "little") + whole[8:])
    elif kind == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif kind == "nothing":
        path.write_bytes(b"")
    elif kind == "other names":
        path.write_bytes(safetensors.numpy.save({f"x.{name}": value for name, value in state.items()}))
    elif kind == "other shapes":
        path.write_bytes(safetensors.numpy.save({n: v[..., :1] if v.ndim else v for n, v in state.items()}))
    elif kind == "not finite":
        path.write_bytes(safetensors.numpy.save({n: v * np.nan if v.ndim else v for n, v in state.items()}))
    elif kind == "code":
        torch.save({"state_dict": Evil()}, path)
    elif kind == "bomb":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("archive/data/0", bytes(10**6))


@pytest.mark.parametrize("backbone", ["Timm", "PixelFeatures"])
@pytest.mark.parametrize("kind", ["header without end", "truncated", "nothing", "other names", "other shapes"])
def test_other_safetensors_are_refused(
    backbone: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDL_WEIGHTS", str(tmp_path))
    weights(kind, tmp_path / f"{SMALL}.safetensors")
    made = Timm(SMALL, True) if backbone == "Timm" else PixelFeatures(SMALL, True)
    with pytest.raises(LDLError, match=r"test_resnet") as refused:
        made.build((3, 32, 32))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["not finite"])
def test_weights_that_are_not_finite_are_refused(kind: str, tmp_path: Path) -> None:
    weights(kind, tmp_path / "a.safetensors")
    with pytest.raises(LDLError, match=r"a.safetensors holds no weights .* holds nan"):
        Timm(SMALL, weights=str(tmp_path / "a.safetensors")).build((3, 32, 32))


@pytest.mark.parametrize("kind", ["code", "bomb", "nothing", "truncated"])
def test_other_weights_are_refused(kind: str, tmp_path: Path) -> None:
    weights(kind, tmp_path / "a.pth")
    with pytest.raises(LDLError, match="a.pth .*give another file" if kind == "bomb" else "a.pth"):
        Timm(SMALL, weights=str(tmp_path / "a.pth")).build((3, 32, 32))


def test_a_checkpoint_with_other_weights_is_refused(tmp_path: Path) -> None:
    checkpoint = torch.load(FOLDER / "timm.ckpt", weights_only=True)
    state = checkpoint["state_dict"]
    for change in (lambda: state.update({NAME: torch.ones(3)}), lambda: state.pop(NAME)):
        change()
        torch.save(checkpoint, tmp_path / "a.ckpt")
        with pytest.raises(LDLError, match=r"a.ckpt holds no weights that fit test_resnet: ") as refused:
            Timm(SMALL, weights=str(tmp_path / "a.ckpt")).build((3, 32, 32))
        assert "\n" not in str(refused.value)


NAME = "backbone.network.conv1.0.weight"
