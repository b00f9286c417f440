"""Small trees of made-up pictures, in exactly the layouts in which sets of faces are handed out."""

from __future__ import annotations

import json
from pathlib import Path

from fakes.face_releases import picture, write_lines

PARTS = {"train": 12, "valid": 4, "test": 5}
"""Pictures of each part."""


def agedb(root: Path) -> Path:
    for number in range(24):
        person, age = ("MariaCallas", "TomHanks", "KimNovak", "JeanGabin")[number % 4], 20 + number
        picture(root / f"{number}_{person}_{age}_{'mf'[number % 2]}.jpg", age, number)
    return root


def afad(root: Path) -> Path:
    for number in range(24):
        picture(
            root
            / "AFAD-Full"
            / f"{15 + number % 6}"
            / ("111", "112")[number % 2]
            / f"{600 + number // 3}-{number % 3}.jpg",
            20,
            number,
        )
    (root / "AFAD-Full" / "15" / "111" / "Thumbs.db").write_bytes(b"\0")
    return root


def appa_real(root: Path) -> Path:
    for part, count in PARTS.items():
        lines = ["file_name,num_ratings,apparent_age_avg,apparent_age_std,real_age"]
        for number in range(count):
            picture(root / part / f"{number:06d}.jpg", 30, number)
            picture(root / part / f"{number:06d}.jpg_face.jpg", 30, number)
            lines.append(f"{number:06d}.jpg,38,{25 + number + 0.25},{2 + number / 8},{24 + number}")
        write_lines(root / f"gt_avg_{part}.csv", lines)
    return root


def clap2016(root: Path) -> Path:
    for part, count in PARTS.items():
        lines = ["image,mean,stdv"]
        for number in range(count):
            # The release has two folders of the training part; names begin anew in each part.
            place = f"{part}_{1 + number % 2}" if part == "train" else part
            picture(root / place / f"{number:06d}.jpg", 30, number)
            lines.append(f"{number:06d}.jpg,{30 + number}.5,{3 + number / 10}")
        write_lines(root / f"{part}_gt.csv", lines)
    return root


def lap2015(root: Path) -> Path:
    first = 1
    for part, count in {"Train": 12, "Validation": 4, "Test": 5}.items():
        lines = []
        for number in range(first, first + count):
            picture(root / part / f"image_{number}.jpg", 30, number)
            lines.append(f"image_{number}.jpg;{20 + number};{2 + number / 10}")
        write_lines(root / part / "Reference.csv", lines)
        first += count
    return root


def imdb_clean(root: Path) -> Path:
    for part, count in PARTS.items():
        lines = ["filename,age,gender,x_min,y_min,x_max,y_max,head_roll,head_yaw,head_pitch"]
        for number in range(count):
            # Persons of train and valid overlap, as in the release.
            person = number % 3 if part != "test" else 90 + number
            name = f"{number % 2:02d}/nm{person:07d}_rm{number}{part}_1955-1-6_{1990 + number}.jpg"
            picture(root / "imdb-clean-1024" / name, 30, number)
            lines.append(f"{name},{25 + number},F,5,6,35,40,1.5,2.5,-3.5")
        write_lines(root / f"imdb_{part}_new_1024.csv", lines)
    return root


def benchmark(root: Path, folders: int = 10) -> Path:
    """AgeDB below ``pictures``, and ``AgeDB.json`` beside it; one of its ages is unknown."""
    entries = []
    for number, path in enumerate(sorted(agedb(root / "pictures" / "AgeDB").iterdir())):
        name, age = path.stem.split("_")[1:3]
        entries.append(
            {
                "img_path": f"AgeDB/AgeDB/{path.name.upper()}",
                "name": name,
                "age": -1 if number == 7 else int(age),
                "folder": number % folders,
                "aligned_bbox": [4, 5, 34, 7, 32, 37, 2, 35],
            }  # fmt: skip
        )
    (root / "AgeDB.json").write_text(json.dumps(entries))
    return root
