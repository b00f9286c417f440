"""Small trees of made-up pictures, in exactly the layouts of the face data sets."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import scipy.io

from ldl.faces import Morph

WIDTH, HEIGHT = 40, 48
MORPH_CSV = "morph_2008_nonCommercial.csv"
MORPH_COLUMNS = ["id_num", "picture_num", "dob", "doa", "race", "gender", "facial_hair", "age", "age_diff"]
MORPH_COLUMNS += ["glasses", "photo"]
CELLS = ["BM", "WM"] * 7 + ["BF", "WF"] * 4 + ["HM", "AF"]
"""Race and gender of MORPH's persons: enough of each for every protocol."""


def picture(path: Path, age: float, number: int = 0) -> None:
    """A JPEG that is the brighter the older, with a little noise; every seventh is grey."""
    path.parent.mkdir(parents=True, exist_ok=True)
    noise = np.random.default_rng(number).integers(0, 40, (HEIGHT, WIDTH, 3))
    pixels = (noise + age * 2).astype(np.uint8)
    assert cv2.imwrite(str(path), pixels[:, :, 0] if number % 7 == 0 else pixels)


def morph_faces(pictures: int = 3) -> list[tuple[str, str]]:
    """Name without ending and race of every picture."""
    return [
        (f"{9055 + 17 * person:06d}_{number}{cell[1]}{18 + 2 * person + number}", cell[0])
        for person, cell in enumerate(CELLS)
        for number in range(pictures)
    ]


def morph_release(root: Path, change: Callable[[list[dict[str, str]]], None] | None = None) -> Path:
    """``MORPH`` as it is released, below ``root``; every fifth file has a small ending, which the table has not.

    Args:
        root: The data folder.
        change: What to do to the table's rows before they are written.
    """
    rows = []
    for number, (name, race) in enumerate(morph_faces()):
        person, _, rest = name.partition("_")
        gender = "M" if "M" in rest else "F"
        picture_num, _, age = rest.partition(gender)
        ending = "jpg" if number % 5 == 0 else "JPG"
        picture(root / "MORPH" / "Album2" / f"{name}.{ending}", float(age), number)
        values = [person, picture_num, "6/21/1949", "3/4/2004", race, gender, "None", age, "-1", "No"]
        rows.append(dict(zip(MORPH_COLUMNS, [*values, f"Album2/{name}.JPG"])))
    if change:
        change(rows)
    with (root / "MORPH" / MORPH_CSV).open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return root


def morph_folders(root: Path, races: bool = True) -> Path:
    """``MORPH`` as Kaggle has it: ``Images/Train`` and so on, with ``Index`` tables that may tell the races."""
    for part, name in enumerate(("Train", "Validation", "Test")):
        faces = morph_faces()[part::3]
        for number, (face, _) in enumerate(faces):
            ending = ("JPG", "jpeg", "jpg")[number % 3]
            picture(root / "MORPH" / "Images" / name / f"{face}.{ending}", float(face[-2:]), number)
        lines = [f"{face}.JPG,{face[-2:]}" + f",{race}" * races for face, race in faces]
        write_lines(root / "MORPH" / "Index" / f"{name}.csv", ["filename,age" + ",race" * races, *lines])
    return root


def morph_lists(root: Path) -> Path:
    """Lists of the fake pictures in every published form, below ``root / "lists"``.

    As in the public ones, a person is in two folds of ``SE``, line ends differ, and some have row numbers.
    """
    folder = root / "lists"
    names = [name for name, _ in morph_faces()]
    ages = [name[-2:] for name in names]
    folds = [number % 5 for number in range(len(names))]
    rows = [f"{name}.JPG\t{fold}\t{age}\tmorph" for name, fold, age in zip(names, folds, ages)]
    write_lines(folder / "RS" / "Setting_3.txt", ["filename\tfold\tage\tdatabase", *rows], "\r\n")
    rows = [
        f"morph\t{name}.JPG\t{1 if number == 0 else number // 3 % 5}\t{name[-2:]}" for number, name in enumerate(names)
    ]
    write_lines(folder / "SE" / "Setting_4.txt", ["database\tfilename\tfold\tage", *rows], "\r\n")
    white = [name for name, race in morph_faces() if race == "W"]
    for fold in range(5):
        for part, chosen in (("train", [n for i, n in enumerate(white) if i % 5 != fold]), ("test", white[fold::5])):
            path = folder / "RS_partial" / f"Setting_1_fold{fold}_{part}.txt"
            if fold == 0:
                rows = [f"0 1 {name[-2:]} {name}.JPG morph" for name in chosen]
                write_lines(path, ["race gender age filename database", *rows], "\r\n")
            else:
                rows = [f"{7 * row},0,1,{name[-2:]},{name}.JPG,morph" for row, name in enumerate(chosen)]
                write_lines(path, [",race,gender,age,filename,database", *rows], "\r\n")
    for fold in range(3):
        rows = [f"1 0 {name[-2:]} {name}.JPG morph" for name in names[fold:60:3]]
        ends = "\r\r\n" if fold == 0 else "\r\n"
        write_lines(
            folder / "3_Fold_BW" / f"Setting_2_fold{fold}.txt", ["race gender age filename database", *rows], ends
        )
    for part, chosen in (("train", names[:40]), ("valid", names[40:50]), ("test", names[50:])):
        rows = [f"{name}.jpg,{int(name[:6])},0,B,1,,{int(name[-2:]) - 16},,GOOD" for name in chosen]
        header = ",id_num,picture_num,race,Male,facial_hair,age,glasses,quality"
        write_lines(folder / "coral" / f"morph2_{part}.csv", [header, *rows])
    write_lines(folder / "sub.txt", names[:50])
    return folder


MORPH_SPLITS: list[tuple[str, str | None]] = [
    ("subject_exclusive", None),
    ("subject_exclusive_list", "SE"),
    ("random_80_20", None),
    ("random_80_20", "RS/Setting_3.txt"),
    ("random_10fold", None),
    ("caucasian", None),
    ("caucasian", "RS_partial"),
    ("s1_s2_s3", None),
    ("s1_s2_s3", "3_Fold_BW"),
    ("morph_sub", None),
    ("morph_sub", "sub.txt"),
    ("coral_list", "coral"),
]
"""Every protocol, on its own and with a list below ``lists`` where it follows one."""


def open_morph(root: Path, protocol: str = "subject_exclusive", split_list: str | None = None, **options: Any) -> Morph:
    """MORPH below ``root``, set up, with small crops and a validation part that few persons suffice for."""
    place = f"lists/{split_list}" if split_list else None
    options = {"crop_size": 16, "val_fraction": 0.25, **options}
    data = Morph(protocol=protocol, split_list=place, root=str(root), **options)
    data.setup()
    return data


def write_lines(path: Path, lines: Iterable[str], ends: str = "\n") -> Path:
    """A text file with these lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes("".join(line + ends for line in lines).encode())
    return path


def fgnet(root: Path, persons: int = 8) -> Path:
    """``FGNET``: images, 68 landmarks and a box each, below ``root``."""
    entries = []
    for person in range(1, persons + 1):
        for number, age in enumerate((2, 9 + person, 9 + person, 30 + 3 * person)):
            letter = "b" if number == 2 else ""
            ending = "jpg" if person % 2 else "JPG"
            picture(root / "FGNET" / "images" / f"{person:03d}A{age:02d}{letter}.{ending}", age, person * 4 + number)
            name = f"{person:03d}a{age:02d}{letter}"
            points = [f"{x:.3f} {y:.3f}" for x, y in landmarks(person * 4 + number)]
            write_lines(
                root / "FGNET" / "points" / f"{name}.pts", ["version: 1", "n_points: 68", "{", *points, "}"], "\r\n"
            )
            corners = [8, 10, 32, 10, 32, 40, 8, 40]
            entries.append({"img_path": f"FG-NET/images/{name}.jpg", "age": age, "aligned_bbox": corners})
    (root / "FGNET" / "face_boxes.json").write_text(json.dumps(entries))
    return root


def landmarks(seed: int) -> np.ndarray:
    """(68, 2) points in FG-NET's order: outline, brows, eyes with their centres, nose, mouth, tip of the nose."""

    def round_(x: float, y: float, width: float, height: float, count: int, start: float = np.pi) -> list:
        turns = start + np.arange(count) * 2 * np.pi / count
        return [(x + width * np.cos(turn), y + height * np.sin(turn)) for turn in turns]

    outline = round_(20, 24, 14, -16, 28)[:15]
    brows = round_(13, 15, 4, 1, 6) + round_(27, 15, 4, 1, 6)
    eyes = [*round_(13, 19, 2, 1, 4), (13, 19), *round_(27, 19, 2, 1, 4), (27, 19)]
    nose = [*round_(20, 25, 3, 4, 9), (18, 29), (22, 29)]
    mouth = [*round_(20, 34, 6, 2, 12), *round_(20, 34, 4, 1, 6), (20, 34)]
    points = np.array([*outline, *brows, *eyes, *nose, *mouth, (20, 27)])
    return points + np.random.default_rng(seed).uniform(-0.5, 0.5, 2)


def utkface(root: Path, count: int = 40) -> Path:
    """``UTKFace``: pictures named ``age_gender_race_date.jpg.chip.jpg``, one of them irregular, below ``root``."""
    for number in range(count):
        age = 1 + 2 * number
        fields = (
            f"{age}_{number % 2}_2017010917{number:02d}"
            if number == 3
            else f"{age}_{number % 2}_3_20170109{number:04d}"
        )
        picture(root / "UTKFace" / f"{fields}.jpg.chip.jpg", age, number)
    return root


def fgnet_aam(path: Path) -> Path:
    """A table in the layout of FG-NET's appearance features, of five features that know the age."""
    rng = np.random.default_rng(0)
    ages = rng.integers(0, 70, (1, 1002)).astype(np.uint8)
    features = rng.normal(size=(1002, 5)) * 0.1 + ages.T / 70.0
    labels = np.exp(-np.square(np.arange(70) - ages.T.astype(float)) / 8)
    scipy.io.savemat(path, {"features": features, "labels": labels, "age": ages, "x": np.arange(70)[None]})
    return path
