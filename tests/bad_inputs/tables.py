"""Tables that cannot be read, or hold what no table may hold: .csv, .npz and .mat."""

from __future__ import annotations

import gzip
import io
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.io
import scipy.sparse
from bad_inputs.harness import SMALL, Case

RNG = np.random.default_rng(0)
X, D = RNG.normal(size=(30, 4)), RNG.dirichlet(np.ones(3), 30)
SOUND = "f0,f1,label:a,label:b\n" + "".join(f"{a:.4f},{b:.4f},0.25,0.75\n" for a, b in RNG.normal(size=(20, 2)))
Write = Callable[[Path], object]


def _features(rows: list[str]) -> str:
    return "f0,f1,label:a,label:b\n" + "".join(f"{row}\n" for row in rows)


HUGE = _features([f"{a * 1e39},{b * 1e39},{c:.3f},{1 - round(c, 3):.3f}" for a, b, c in RNG.uniform(0.1, 1, (20, 3))])
TOO_HUGE = _features([f"{a * 1e300},{b * 1e300},.25,.75" for a, b in RNG.normal(size=(20, 2))])
CONSTANT = _features(["1,2,.25,.75", "1,2,.5,.5"] * 10)

# What stands in a.csv, and what the line says.
CSV: dict[str, tuple[str | bytes, str]] = {
    "sound": (SOUND, ""),
    "byte order mark": (SOUND.encode("utf-8-sig"), ""),
    "lines that end in CR": (SOUND.replace("\n", "\r"), ""),
    "blanks around fields": (SOUND.replace(",", " , "), ""),
    "empty": ("", "a.csv|label:NAME"),
    "blank lines": ("\n\n\n", "a.csv|label:NAME"),
    "header alone": ("f0,label:a,label:b\n", "a.csv|needs rows"),
    "a truth value": (f"{SOUND}true,2,.25,.75\n", ""),
    "one row": ("f0,label:a,label:b\n1,.5,.5\n", "folds 10"),
    "header twice": (SOUND + SOUND, "a.csv|line 22|'label:a'"),
    "latin-1": (SOUND.replace("f0", "größe").encode("latin-1"), "a.csv|line 1|UTF-8|0xf6"),
    "latin-1 below": ((SOUND + "größe,2,.25,.75\n").encode("latin-1"), "a.csv|line 22|UTF-8|0xf6"),
    "utf-16": (SOUND.encode("utf-16"), "a.csv|line 1|UTF-8|0xff"),
    "utf-32": (SOUND.encode("utf-32"), "a.csv|line 1|UTF-8|0xff"),
    "NUL": (SOUND.replace("0.25", "0.2\0", 1), "a.csv|line 2"),
    "binary": (bytes(range(256)) * 20, "a.csv|line"),
    "picture": (b"\x89PNG\r\n\x1a\n" + bytes(100), "a.csv|line 1|UTF-8|0x89"),
    "compressed": (gzip.compress(SOUND.encode()), "a.csv|line 1|UTF-8|0x8b"),
    "field without end": (SOUND + "1" * 200_000 + ",1,.25,.75\n", "a.csv|line 22|131072"),
    "name without end": ("f" * 200_000 + ",f1,label:a,label:b\n1,2,.25,.75\n", "a.csv|line 1|131072"),
    "open quote": (SOUND + '"1,2,.25,.75\n1,2,.25,.75\n', "a.csv|line 22"),
    "short row": (SOUND + "1,2,.25\n", "a.csv|line 22 has 3 fields"),
    "long row": (SOUND + "1,2,.25,.75,1\n", "a.csv|line 22 has 5 fields"),
    "semicolons": (SOUND.replace(",", ";"), "a.csv|semicolons|with commas"),
    "decimal commas": (SOUND.replace(",", ";").replace(".", ","), "a.csv|semicolons|decimal=','"),
    "tabs": (SOUND.replace(",", "\t"), "a.csv|tabs|with commas"),
    "no features": ("label:a,label:b\n" + ".25,.75\n" * 20, "a.csv|feature columns"),
    "label twice": (SOUND.replace("label:b", "label:a"), "a.csv|'label:a'|twice"),
    "mass below 0": (SOUND + "1,2,-.25,1.25\n", "a.csv|row 20|-0.25|negative"),
    "sum of 2": (SOUND + "1,2,1,1\n", "a.csv|row 20|sums to 2|--data.normalize"),
    "sum of 0": (SOUND + "1,2,0,0\n", "a.csv|row 20|sums to 0"),
    "features beyond float32": (HUGE, ""),
    "features beyond scaling": (TOO_HUGE, "a.csv|line 2|'f0'|more than 1e100"),
    "a name that climbs": (SOUND.replace("label:a", "label:../../a"), ""),
    "a name written from right to left": (SOUND.replace("label:a", "label:\u202ea"), ""),
} | {
    f"field {field!r}": (f"{SOUND}{field},2,.25,.75\n", "a.csv|line 22|'f0'|not a finite number")
    for field in ("inf", "-inf", "1e400", "0x10", "−1", "2_0", "٣", "1,5".replace(",", "'"))
} | {
    # Gaps are filled and marked.
    f"field {field!r}": (f"{SOUND}{field},2,.25,.75\n", "") for field in ("nan", "None", "")
}  # fmt: skip


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _claims(shape: tuple[int, ...]) -> bytes:
    header = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(64)


def _zip(**members: bytes) -> Write:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(f"{name}.npy", content)

    return write


def _npz(features: np.ndarray = X, labels: np.ndarray = D) -> Write:
    return lambda path: np.savez(path, features=features, labels=labels)


def _cut(write: Write, size: int) -> Write:
    return lambda path: (write(path), path.write_bytes(path.read_bytes()[:size]))


NPZ: dict[str, tuple[Write, str]] = {
    "sound": (_npz(), ""),
    "half precision": (_npz(X.astype(np.float16)), ""),
    "big endian": (_npz(X.astype(">f8")), ""),
    "truth values": (_npz(X > 0), ""),
    "empty file": (lambda path: path.write_bytes(b""), "a.npz"),
    "no arrays": (_zip(), "a.npz|it has none"),
    "objects": (_npz(np.array([{}] * 30, dtype=object)), "a.npz|Python objects"),
    "texts": (_npz(X.astype(str)), "a.npz|not numbers"),
    "complex": (_npz(X + 1j), "a.npz|complex"),
    "dates": (_npz(np.full((30, 4), np.datetime64("2020"))), "a.npz|datetime64"),
    "a number": (_npz(np.array(1.0)), "a.npz|shape ()"),
    "a vector": (_npz(X[:, 0]), "a.npz|shape (30,)"),
    "a cube": (_npz(X[..., None]), "a.npz|shape (30, 4, 1)"),
    "no rows": (_npz(X[:0], D[:0]), "a.npz|shape (0, 4)"),
    "no columns": (_npz(X[:, :0]), "a.npz|shape (30, 0)"),
    "no labels": (_npz(X, D[:, :0]), "a.npz|shape (30, 0)"),
    "fewer rows": (_npz(X[:-1]), "29 rows|30"),
    "NaN": (_npz(np.where(np.arange(120).reshape(30, 4) == 7, np.nan, X)), "a.npz|row 1, column 3|nan"),
    "fields": (_npz(np.zeros(30, dtype=[("a", "f4")])), "a.npz|shape (30,)"),
    "claims 1e12 rows": (_zip(features=_claims((10**12, 4)), labels=_npy(D)), "features|claims numbers of shape"),
    "claims rows below 0": (_zip(features=_claims((-3, 4)), labels=_npy(D)), "a.npz"),
    "cut member": (_zip(features=_npy(X)[:200], labels=_npy(D)), "a.npz"),
    "no array in it": (_zip(features=b"abc", labels=_npy(D)), "a.npz"),
    "names that climb": (_zip(**{"../features": _npy(X), "labels": _npy(D)}), "a.npz|../features"),
    "cut": (_cut(_npz(), 900), "a.npz"),
}


def _mat(**variables: object) -> Write:
    return lambda path: scipy.io.savemat(path, variables)


def _flipped(place: int) -> Write:
    def write(path: Path) -> None:
        scipy.io.savemat(path, {"features": X, "labels": D})
        content = bytearray(path.read_bytes())
        content[place] ^= 0xFF
        path.write_bytes(content)

    return write


HDF5 = b"MATLAB 7.3 MAT-file".ljust(116) + bytes(8) + b"\x00\x02IM" + bytes(384) + b"\x89HDF\r\n\x1a\n"
MAT: dict[str, tuple[Write, str]] = {
    "sound": (_mat(features=X, labels=D), ""),
    "sparse": (_mat(features=scipy.sparse.csr_matrix(X), labels=D), ""),
    "empty file": (lambda path: path.write_bytes(b""), "a.mat"),
    "of version 7.3": (lambda path: path.write_bytes(HDF5), "a.mat|7.3"),
    "cut": (_cut(_mat(features=X, labels=D), 900), "a.mat"),
    "cells": (_mat(features=np.array([[X[0], X[1]]], dtype=object), labels=D), "a.mat"),
    "a structure": (_mat(features={"a": X}, labels=D), "a.mat|not numbers"),
    "texts": (_mat(features=np.array(["a", "b"]), labels=D), "a.mat"),
    "complex": (_mat(features=X + 1j, labels=D), "a.mat|complex"),
    "a cube": (_mat(features=RNG.normal(size=(30, 4, 2)), labels=D), "a.mat|shape (30, 4, 2)"),
    "nothing": (_mat(features=np.zeros((0, 0)), labels=D), "a.mat|shape (0, 0)"),
} | {f"byte {place} flipped": (_flipped(place), "a.mat") for place in (126, 128, 132, 160, 170)}

PLACES: dict[str, tuple[Callable[[Path], object] | None, str, str]] = {
    "a folder": (lambda here: (here / "a.csv").mkdir(), "a.csv", "a.csv"),
    "a pipe": (lambda here: os.mkfifo(here / "a.csv"), "a.csv", "a.csv"),
    "a pipe for .npz": (lambda here: os.mkfifo(here / "a.npz"), "a.npz", "a.npz"),
    "a pipe for .mat": (lambda here: os.mkfifo(here / "a.mat"), "a.mat", "a.mat"),
    "a link to itself": (lambda here: (here / "a.csv").symlink_to(here / "a.csv"), "a.csv", "a.csv"),
    "a link to nothing": (lambda here: (here / "a.csv").symlink_to(here / "b.csv"), "a.csv", "a.csv"),
    "below a file": (lambda here: (here / "a.csv").write_text(SOUND), "a.csv/b.csv", "b.csv"),
    "a name without end": (None, "a" * 5000 + ".csv", "too long"),
    "NUL in the name": (None, "a\0.csv", "null byte"),
    "another ending": (lambda here: (here / "a.xls").write_text(SOUND), "a.xls", "'.xls'|.csv"),
    "capitals": (lambda here: (here / "a.CSV").write_text(SOUND), "a.CSV", ""),
}

TABLE = "--data TabularLDL --data.path '{here}/%s' --model.backbone null --model.head %s " + SMALL


def cases() -> dict[str, Case]:
    """All of them, by name."""
    found = {}
    for name, (content, says) in CSV.items():
        found[f"csv, {name}"] = Case("", says, _writes("a.csv", content), TABLE % ("a.csv", "Softmax"))
    for kind, table in (("npz", NPZ), ("mat", MAT)):
        for name, (write, says) in table.items():
            found[f"{kind}, {name}"] = Case("", says, _in(f"a.{kind}", write), TABLE % (f"a.{kind}", "Softmax"))
    for name, (make, path, says) in PLACES.items():
        found[f"place, {name}"] = Case("", says, make, TABLE % (path, "Softmax"))
    for head in ("LDLF", "StructRF", "MSLP", "AAKNN", "MaxEnt", "DSNA", "CostSensitiveForest", "MeanPredictor"):
        more = "--model.head.trees 2" if head in ("StructRF", "DSNA", "CostSensitiveForest") else ""
        base = TABLE % ("a.csv", head)
        found[f"csv, constant features for {head}"] = Case(more, "", _writes("a.csv", CONSTANT), base)
        found[f"csv, huge features for {head}"] = Case(
            f"{more} --data.scaling none", "a.csv|row|float32", _writes("a.csv", HUGE), base
        )
    sums = {"0": ".25,.75\n1,2,0,0", "1e308": "1e308,1e308", "1e-320": "1e-320,1e-320"}
    for name, row in sums.items():
        says = "row 21|zero" if name == "0" else "" if name == "1e-320" else "a.csv|line 22|more than 1e100"
        content = f"{SOUND}1,2,{row}\n"
        found[f"csv, {name} to normalise"] = Case(
            "--data.normalize true", says, _writes("a.csv", content), TABLE % ("a.csv", "Softmax")
        )
    return found


def _writes(name: str, content: str | bytes) -> Callable[[Path], object]:
    return lambda here: (here / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def _in(name: str, write: Write) -> Callable[[Path], object]:
    return lambda here: write(here / name)
