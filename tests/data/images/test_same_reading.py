"""Run, audit and Python read the same items, votes, labels and groups from drawn lists of images and files of votes."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from fakes.image_votes import image

from ldl.annotations import Annotations, read_annotations
from ldl.command.audit import audit
from ldl.data import ImageLDL
from ldl.validation.files import as_stored

pytestmark = [pytest.mark.usefixtures("own_cache"), pytest.mark.filterwarnings("ignore:.*label_type:UserWarning")]
ITEMS, RATERS = 12, 5
LABELS = (("bright", "dark", "grey"), ("1", "2", "10"), ("star-1", "star-2", "star-3"), ("0", "4", "7"))
SPELLED = ("images/{}.png", "./images/{}.png", "images//{}.png", ".\\images\\{}.png")
Votes = dict[str, Counter[str]]


@dataclass
class Drawn:
    """A drawn list: its file, options, and what it holds."""

    file: Path
    votes: Votes
    groups: dict[str, str]
    labels: tuple[str, ...]
    apart: Path | None
    options: dict[str, Any] = field(default_factory=dict)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("same")
    for row in range(ITEMS):
        image(root / f"images/{row}.png", row / ITEMS, row)
    return root


def drawn(seed: int, root: Path) -> Drawn:
    """A list of a layout, kind of label, place of votes and groups, with gaps, repeats and spellings."""
    rng = np.random.default_rng(seed)
    layout = ("counts", "long", "single", "matrix")[seed % 4]
    labels = LABELS[rng.integers(len(LABELS))]
    apart, group = bool(rng.integers(2)), (None, "patient", "subject_id")[rng.integers(3)]
    items = [f"images/{row}.png" for row in range(ITEMS)]
    by_rater = [rng.choice([*labels, ""], RATERS, p=[0.3, 0.3, 0.2, 0.2]) for _ in items]
    by_rater[0][:3], by_rater[1][:3] = labels, labels  # every label has a vote
    by_rater[ITEMS // 2][:] = ""  # and one item has none
    options: dict[str, Any] = {"label_type": "nominal"} if labels == LABELS[3] else {}
    column = "photo" if apart and rng.integers(2) else "image" if apart else "path"
    options |= {"votes_item_column": "photo"} if column == "photo" else {}

    def spelt(row: int) -> str:
        return SPELLED[rng.integers(4)].format(row)

    rows: list[dict[str, Any]] = []
    votes: Votes = {item: Counter(filter(None, answers)) for item, answers in zip(items, by_rater)}
    for row, answers in enumerate(by_rater):
        if layout == "counts":
            counts = [{f"label:{label}": votes[items[row]][label] for label in labels}]
            if row == 2 and seed % 3 == 0:  # the item stands in two rows
                options["duplicates"] = "keep"
                counts, votes[items[row]] = counts * 2, votes[items[row]] + votes[items[row]]
            rows += [{column: spelt(row), **count} for count in counts]
        elif layout == "matrix":
            rows.append({column: spelt(row), **{f"w{rater}": answer for rater, answer in enumerate(answers)}})
        else:
            for rater, answer in enumerate(answers):
                named = {"rater": f"w{rater}"} if layout == "long" else {}
                rows += [{column: spelt(row), **named, "label": answer}] if answer or rater == 0 else []
    if layout == "matrix":
        options["rater_columns"] = ["w*"]
    frame = pd.DataFrame(rows)
    numbers = [int(re.sub(r"\D", "", Path(name.replace("\\", "/")).stem)) for name in frame[column]]
    groups = {item: f"p{row // 3}" for row, item in enumerate(items)} if group else {}
    listed = pd.DataFrame({"path": [spelt(row) for row in range(ITEMS)]}) if apart else frame
    if group and (not apart or rng.integers(2)):
        frame[group] = [f"p{number // 3}" for number in numbers]
    elif group:
        listed[group] = [f"p{number // 3}" for number in range(ITEMS)]
    suffix = "parquet" if seed % 5 == 4 else "csv"
    paths = [root / f"list{seed}.{suffix}", root / f"votes{seed}.{suffix}"]
    for table, path in zip((listed, frame), paths):
        table.to_parquet(path) if suffix == "parquet" else table.to_csv(path, index=False)
    return Drawn(paths[0], votes, groups, labels, paths[1] if apart else None, options)


def number(name: str) -> float:
    return float(re.sub(r"^\D*", "", name))


def held(items: Any, labels: Any, counts: np.ndarray) -> Votes:
    """Votes by item and label; labels of a scale by their number."""
    names = labels.axes[0] if labels.kind == "ordinal" else labels.names
    return {str(item): Counter(dict(zip(names, map(int, np.round(row))))) for item, row in zip(items, counts)}


def expected(found: Drawn) -> Votes:
    scale = found.labels in LABELS[1:3]
    votes = {item: {number(n) if scale else n: count for n, count in c.items()} for item, c in found.votes.items() if c}
    return {item: Counter(count) for item, count in votes.items()}


def python(found: Drawn, root: Path) -> Annotations:
    """The votes as a user of Python reads them."""
    options = {**found.options, "item_column": found.options.get("votes_item_column")}
    options.pop("votes_item_column", None)
    file = found.apart or found.file
    header = (pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)).columns
    group = next((name for name in ("patient", "subject_id") if name in header), None)
    return read_annotations(file, group_column=group, spell=lambda name: as_stored(normpath(name), root), **options)


def flags(options: dict[str, Any]) -> list[str]:
    """Options of a run as those of the audit."""
    listed = {name: [value] if isinstance(value, str) else value for name, value in options.items()}
    return [word for name, values in listed.items() for word in (f"--{name}", *values)]


@pytest.mark.parametrize("seed", range(20))
def test_drawn_lists(seed: int, images: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = drawn(seed, images)
    options = {**found.options, "votes": str(found.apart)} if found.apart else found.options
    data = ImageLDL(path=str(found.file), crop_size=8, folds=2, augmentation="none", val_fraction=0.0, **options)
    data.setup()
    target, votes = data.columns["target"].double().numpy(), data.columns["votes"].numpy()
    assert held(data.names, data.labels, target * votes[:, None]) == expected(found)
    groups = {} if data.groups is None else dict(zip(data.names, data.groups))
    assert groups == {name: group for name, group in found.groups.items() if found.votes[name]}
    assert data.protocol == ("group_exclusive" if found.groups else "random_kfold")

    read = python(found, images)
    assert held(read.items, read.labels, read.counts) == expected(found) and read.labels == data.labels
    if read.groups is not None:
        assert dict(zip(read.items, read.groups)) == groups

    capsys.readouterr()
    audit([str(found.file), *flags(options)])
    said = capsys.readouterr().out
    assert f"images      {len(expected(found))} can be read, 0 cannot\n" in said
    assert f"items       {data.annotations}\n" in said and f"{read.layout} layout, {len(read)} items" in said
    assert f"votes       {votes.sum():g}, " in said and f"labels      3 {data.labels.kind}: " in said
    sizes = Counter(groups.values()).values()
    shown = f"groups      {len(sizes)}, of {min(sizes)} to {max(sizes)} rows" if groups else "groups      unknown"
    assert shown in said

    item = {"item_column": options["votes_item_column"]} if "votes_item_column" in options else {}
    alone = {**{name: value for name, value in options.items() if name not in ("votes", "votes_item_column")}, **item}
    audit([str(found.apart or found.file), "--layout", read.layout, *flags(alone)])
    said = capsys.readouterr().out
    assert f"items       {read}\n" in said and "images " not in said
