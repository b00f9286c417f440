"""Pictures, their names and their lists."""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from bad_inputs.harness import SMALL, Case
from fakes.edge_images import bsds
from fakes.face_releases import utkface
from PIL import Image

FACES = (
    "--data UTKFace --data.root {here} --data.crop_size 16 --data.folds 2 --data.sigma 2 --model.backbone Identity "
    f"--model.backbone.flatten true --model.head Softmax {SMALL}"
)
EDGES = (
    "--data BSDS500 --data.path {here}/BSDS500 --data.crop 32 --data.batch_size 2 --model.backbone PixelFeatures "
    f"--model.backbone.name mobilenetv2_050 --model.backbone.pretrained false --model.head Softmax {SMALL}"
)
FACE = "30_0_0_20170101000000000.jpg.chip.jpg"


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _png(width: int, height: int) -> bytes:
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + _chunk(b"IDAT", zlib.compress(bytes(1000))) + _chunk(b"IEND", b"")


def _picture(size: tuple[int, int], mode: str = "RGB", form: str = "PNG") -> Callable[[Path], object]:
    return lambda path: Image.new(mode, size).save(path, form)


# What lies there as a face of UTKFace besides sound ones, its name, and what the line says.
FILES: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "sound": (_picture((40, 48)), FACE, ""),
    "grey": (_picture((40, 48), "L"), FACE, ""),
    "16 bits": (_picture((40, 48), "I;16"), FACE, ""),
    "palette": (_picture((40, 48), "P"), FACE, ""),
    "transparent": (_picture((40, 48), "RGBA"), FACE, ""),
    "CMYK": (_picture((40, 48), "CMYK", "JPEG"), FACE, ""),
    "one pixel": (_picture((1, 1)), FACE, ""),
    "very wide": (_picture((4000, 1)), FACE, ""),
    "empty": (lambda path: path.write_bytes(b""), FACE, f"{FACE}|image"),
    "text": (lambda path: path.write_text("abc"), FACE, f"{FACE}|image"),
    "cut": (lambda path: path.write_bytes(_png(40, 48)[:60]), FACE, f"{FACE}|image"),
    "bomb": (lambda path: path.write_bytes(_png(60_000, 60_000)), FACE, f"{FACE}|image"),
    "bomb below the limit": (lambda path: path.write_bytes(_png(12_000, 12_000)), FACE, f"{FACE}|image"),
    "no size": (lambda path: path.write_bytes(_png(0, 0)), FACE, f"{FACE}|image"),
    "a pipe": (os.mkfifo, FACE, FACE),
    "a link to nothing": (lambda path: path.symlink_to("nothing"), FACE, FACE),
    "a folder": (lambda path: path.mkdir(), FACE, ""),
    "no age": (_picture((40, 48)), "face.jpg", "face.jpg"),
    "an age of 300": (_picture((40, 48)), FACE.replace("30_", "300_", 1), "300"),
    "an age below 0": (_picture((40, 48)), FACE.replace("30_", "-5_", 1), "-5_"),
    "an age that is a word": (_picture((40, 48)), FACE.replace("30_", "old_", 1), "old_"),
}

OPTIONS: dict[str, tuple[str, str]] = {
    "crop of 0": ("--data.crop_size 0", "crop_size 0"),
    "crop of a million": ("--data.crop_size 1000000", "crop_size 1000000"),
    "margin that is NaN": ("--data.margin .nan", "margin nan"),
    "margin of 1e9": ("--data.margin 1e9", "margin"),
    "sigma of 0": ("--data.sigma 0", "sigma 0"),
    "ages to a million": ("--data.max_age 1000000", "max_age 1000000"),
    "ages from above": ("--data.min_age 90 --data.max_age 10", "min_age"),
    "unknown protocol": ("--data.protocol whatever", "protocol|'whatever'"),
    "list for a protocol without": ("--data.split_list nothing.txt", "split_list"),
    "boxes that are not there": ("--data.boxes nothing.csv", "UTKFace has no use for boxes"),
    "no such root": ("--data.root /nothing", "/nothing"),
    "transform that is no transform": (
        "--data.train_transforms '[{class_path: os.system}]'",
        "os.system|train_transforms",
    ),
    "transform of random size": (
        "--data.train_transforms '[{class_path: albumentations.RandomScale, init_args: {scale_limit: 0.5, p: 1}}]'",
        "size",
    ),
    "network for another size": (
        "--model.backbone Timm --model.backbone.name vit_tiny_patch16_224 --model.backbone.flatten null",
        "flatten",
    ),
    "transformer of another size": (
        "--model.backbone=Timm --model.backbone.name=vit_tiny_patch16_224",
        "vit_tiny_patch16_224|224",
    ),
    "skipping all": ("--data.skip_unreadable true", ""),
}

# Options of edges, what is done to the tree, and what the line says.
TREES: dict[str, tuple[str, Callable[[Path], object] | None, str]] = {
    "sound": ("", None, ""),
    "crop larger than pictures": ("--data.crop 4096", None, "crop"),
    "crop without end": ("--data.crop 1000000000", None, "crop"),
    "tolerance of 1e9": ("--data.tolerance 1e9", None, "tolerance"),
    "no truth": ("", lambda folder: _first(folder, "*.mat").unlink(), "ground truth"),
    "damaged truth": ("", lambda folder: _first(folder, "*.mat").write_bytes(b"abc"), ".mat"),
    "truth of another size": ("", lambda folder: _picture((9, 9))(_first(folder, "*.jpg")), "size"),
    "damaged picture": ("", lambda folder: _first(folder, "*.jpg").write_bytes(b"abc"), ".jpg"),
    "scale of 0": ("--model.backbone.scales [0]", None, "scales"),
    "scale without end": ("--model.backbone.scales [1e9]", None, "scales"),
    "fitted head on maps": ("--model.head StructRF", None, "StructRF"),
}


def cases() -> dict[str, Case]:
    """All of them, by name."""
    found = {}
    for name, (write, file, says) in FILES.items():
        found[f"face, {name}"] = Case("", says, _faces_and(write, file), FACES)
    for name, (args, says) in OPTIONS.items():
        found[f"faces, {name}"] = Case(args, says, utkface, FACES)
    for name, (args, change, says) in TREES.items():
        found[f"edges, {name}"] = Case(args, says, _edges_but(change), EDGES)
    return found


def _faces_and(write: Callable[[Path], object], file: str) -> Callable[[Path], object]:
    return lambda here: write(_folder(utkface(here)) / file)


def _folder(root: Path) -> Path:
    return next(root.rglob("*.jpg")).parent


def _edges_but(change: Callable[[Path], object] | None) -> Callable[[Path], object]:
    return lambda here: change(_tree(here)) if change else _tree(here)


def _tree(here: Path) -> Path:
    bsds(here / "BSDS500")
    return here / "BSDS500"


def _first(folder: Path, pattern: str) -> Path:
    return sorted(path for path in folder.rglob(pattern) if path.parent.name == "train")[0]
