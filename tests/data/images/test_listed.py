"""Images with votes or values: every layout, splits and groups, folders of classes, and what is wrong with lists."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fakes.face_releases import write_lines
from fakes.image_votes import classes, image, voted, votes

from ldl.data import ImageLDL, ImageValues
from ldl.data.images.listed import lists_images
from ldl.errors import LDLError
from ldl.tables import open_named

pytestmark = pytest.mark.usefixtures("own_cache")


RATERS = [f"r{number}" for number in range(8)]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return voted(tmp_path_factory.mktemp("voted"))


def made(path: Path, kind: type[ImageLDL] | type[ImageValues] = ImageLDL, **options: Any) -> Any:
    data = kind(path=str(path), **{"crop_size": 16, "folds": 3, "augmentation": "none", **options})
    data.setup()
    return data


@pytest.mark.parametrize(
    ("file", "options"),
    [
        ("counts.csv", {}),
        ("counts.csv", {"label_columns": ["label:*"]}),
        ("long.csv", {}),
        ("matrix.csv", {"rater_columns": RATERS}),
        ("images.csv", {"votes": "long.csv"}),
        ("images.csv", {"votes": "counts.csv"}),
        ("counts.parquet", {}),
    ],
)
def test_every_layout_has_the_same_votes(file: str, options: dict[str, Any], tree: Path) -> None:
    table = pd.read_csv(tree / "counts.csv")
    table.to_parquet(tree / "counts.parquet")
    table[["path"]].to_csv(tree / "images.csv", index=False)
    if "votes" in options:
        options = {"votes": str(tree / options["votes"])}
    data = made(tree / file, **options)
    counts = np.array([row[1:] for row in votes()], float)
    assert data.labels.names == ("bright", "dark") and data.names == [row[0] for row in votes()]
    np.testing.assert_allclose(data.columns["target"], counts / counts.sum(1, keepdims=True), atol=1e-6)
    assert data.columns["votes"].tolist() == counts.sum(1).tolist()
    (batch,) = list(made(tree / file, batch_size=64, **options).whole_dataloader())
    assert batch["input"].shape == (24, 3, 16, 16) and batch["input"].dtype == torch.uint8
    assert np.corrcoef(batch["input"].float().mean((1, 2, 3)), batch["target"][:, 0])[0, 1] > 0.99


def test_the_protocol_follows_the_columns(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert made(tree / "counts.csv").protocol == "random_kfold"
    assert "images 'path', counts layout, 24 items, 2 nominal labels, 2 to 8 votes an item" in capsys.readouterr().out
    grouped = made(tree / "long.csv", val_fraction=0.2)
    assert (grouped.protocol, grouped.leaky, grouped.leak, grouped.num_folds) == ("group_exclusive", False, 0, 3)
    assert "images 'path', group 'person', long layout" in capsys.readouterr().out
    assert made(tree / "long.csv", protocol="leave_one_group_out").num_folds == 12
    leaking = made(tree / "long.csv", protocol="random_kfold")
    assert leaking.leaky is True and leaking.leak > 0
    parted = made(tree / "split.csv")
    assert (parted.protocol, parted.num_folds, parted.leaky) == ("published", 1, True) and parted.leak > 0
    rows = np.arange(24)
    assert parted.split.train.tolist() == rows[rows % 4 < 2].tolist()
    assert parted.split.val.tolist() == rows[2::4].tolist() and parted.split.test.tolist() == rows[3::4].tolist()
    chosen = made(tree / "split.csv", protocol="group_exclusive", val_fraction=0.2)
    assert chosen.num_folds == 3 and chosen.leak == 0
    with pytest.raises(LDLError, match="no groups to keep apart; name their column with data.group_key"):
        made(tree / "counts.csv", protocol="group_exclusive")


def test_a_weight_follows_the_votes(tree: Path) -> None:
    data = made(tree / "counts.csv", weighting="dirichlet", smooth=True)
    train = data.split.train
    effective = data.prior.effective_votes(data.columns["votes"].numpy()[train])
    np.testing.assert_allclose(data.columns["weight"][train], effective / effective.mean(), rtol=1e-6)
    expected = data.prior.posterior_mean(data.counts(train))
    np.testing.assert_allclose(data.columns["target"][train], expected, rtol=1e-5)
    others = np.setdiff1d(np.arange(data.size), train)
    assert (data.columns["weight"][others] == 1).all()
    np.testing.assert_allclose(
        data.columns["target"][others] * data.columns["votes"][others, None], data.counts(others), atol=1e-4
    )


def test_raters_stay_with_their_images_if_some_cannot_be_read(tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "tree")
    first = pd.read_csv(tree / "matrix.csv")["path"][0]
    (tmp_path / "tree" / first).write_bytes(b"no image")
    options = {"rater_columns": RATERS, "target": "dawid_skene", "protocol": "random_kfold"}
    data = made(tmp_path / "tree" / "matrix.csv", skip_unreadable=True, **options)
    assert data.size == 23 and data.annotations.items.tolist() == data.names and first not in data.names
    shares = data.annotations.counts / data.annotations.counts.sum(1, keepdims=True)
    np.testing.assert_allclose(data.observed_target, shares, atol=1e-6)
    train = data.split.train
    np.testing.assert_allclose(data.columns["target"][train], data.dawid_skene.probabilities, atol=1e-6)
    sure = data.annotations.counts[train].max(1) == data.annotations.votes[train]
    chosen = data.dawid_skene.probabilities[sure].argmax(1)
    assert sure.any() and (chosen == shares[train][sure].argmax(1)).mean() > 0.8


def test_folders_are_classes_and_parts(tmp_path: Path) -> None:
    data = made(classes(tmp_path / "one"), folds=2)
    assert data.labels.names == ("bright", "dark") and data.size == 16 and data.title == "one"
    assert data.columns["target"].sum(0).tolist() == [8, 8] and data.columns["votes"].unique().tolist() == [1]
    for part in ("train", "val", "test"):
        classes(tmp_path / "two" / part)
    data = made(tmp_path / "two", split_copies=True)
    assert data.protocol == "published" and data.labels.names == ("bright", "dark")
    assert {data.names[row].partition("/")[0] for row in data.split.val} == {"val"}
    image(tmp_path / "one" / "loose.png", 0.5)
    with pytest.raises(LDLError, match="1 images lie in no sub-folder, which would be their class, the first is loose"):
        made(tmp_path / "one")
    ballots = [f"{path.relative_to(tmp_path / 'one')},4,1" for path in (tmp_path / "one").rglob("*.png")]
    write_lines(tmp_path / "votes.csv", ["path,label:yes,label:no", *ballots])
    data = made(tmp_path / "one", votes=str(tmp_path / "votes.csv"))
    assert data.size == 17 and data.columns["target"][:, 0].unique().tolist() == pytest.approx([0.8])


def test_ordered_labels(tmp_path: Path) -> None:
    for number in range(12):
        image(tmp_path / str(1 + number % 3) / f"{number}.png", number / 12, number)
    data = made(tmp_path)
    assert data.labels.kind == "ordinal" and data.labels.axes == ((1.0, 2.0, 3.0),)


SPELLED = ["images\\{}", ".\\images\\{}", "./images/{}", "images//{}"]


@pytest.mark.parametrize("listed", ["images/{}", *SPELLED])
@pytest.mark.parametrize("spelled", SPELLED)
@pytest.mark.parametrize("file", ["long.csv", "counts.csv", "matrix.csv"])
def test_votes_join_images_in_any_spelling(listed: str, spelled: str, file: str, tree: Path, tmp_path: Path) -> None:
    root, raters = shutil.copytree(tree, tmp_path / "tree"), RATERS if file == "matrix.csv" else ()
    write_lines(root / "list.csv", ["path", *(listed.format(Path(name).name) for name, _, _ in votes())])
    lines = (root / file).read_text().splitlines()
    rows = [spelled.format(line.removeprefix("images/")) for line in lines[1:]]
    write_lines(root / "votes.csv", [lines[0], *rows])
    data = made(root / "list.csv", votes=str(root / "votes.csv"), rater_columns=raters)
    assert data.names == [row[0] for row in votes()]
    assert data.columns["votes"].tolist() == [a + b for _, a, b in votes()]
    if file == "counts.csv":
        write_lines(root / "votes.csv", [lines[0], *rows, lines[1]])
        with pytest.raises(LDLError, match="votes.csv: 1 rows repeat an item of path, the first is 'images/0.png'"):
            made(root / "list.csv", votes=str(root / "votes.csv"))


@pytest.mark.parametrize("name", ["task", "item", "instance", "example", "id", "image_path"])
def test_a_column_of_items_may_name_the_images(name: str, tree: Path, tmp_path: Path) -> None:
    root = shutil.copytree(tree, tmp_path / "tree")
    lines = (root / "long.csv").read_text().splitlines()
    other = write_lines(root / "other.csv", [f"{name},worker,label,person", *lines[1:]])
    assert lists_images(open_named(other)) and made(other).columns["votes"].tolist() == [a + b for _, a, b in votes()]
    write_lines(root / "list.csv", ["path", *(file for file, _, _ in votes())])
    assert len(made(root / "list.csv", votes=str(other)).names) == 24
    write_lines(root / "ids.csv", [f"{name},worker,label", "7,r0,bright"])
    assert not lists_images(open_named(root / "ids.csv"))


@pytest.mark.parametrize("spelled", SPELLED)
def test_a_list_may_write_folders_as_windows_does(spelled: str, tree: Path, tmp_path: Path) -> None:
    root = shutil.copytree(tree, tmp_path / "tree")
    lines = [f"{spelled.format(Path(file).name)},{a},{b}" for file, a, b in votes()]
    data = made(write_lines(root / "other.csv", ["path,label:bright,label:dark", *lines]))
    assert data.names == [row[0] for row in votes()]


def test_values(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = made(tree / "values.csv", ImageValues, unit="votes")
    assert data.protocol == "group_exclusive" and data.labels.unit == "votes"
    assert data.values.tolist() == [row[1] for row in votes()]
    assert data.labels.decode(data.columns["target"]).tolist() == pytest.approx(data.values.tolist(), abs=1e-5)
    assert "data.step and data.sigma chosen from the file's values" in capsys.readouterr().out
    with pytest.raises(LDLError, match="outside the labels 0..2"):
        made(tree / "values.csv", ImageValues, low=0, high=2, step=1)
    with pytest.raises(LDLError, match="is a folder; ImageValues needs a .csv or Parquet file"):
        made(tree / "images", ImageValues)


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["name,label:a", "0.png,1"], {}, "no image files under path, image.* pass --data.path_column"),
        (["path,image,label:a,label:b", "a,b,1,2"], {}, "may be the image files; choose one with --data.path_col"),
        (["path,label:a,label:b", "0.png,1,2", "./0.png,1,2"], {}, "list.csv: 1 rows repeat an item of path"),
        (["path,label:a,label:b", ",1,2"], {}, "line 2, column 'path' is '', which names no image"),
        (
            ["path,label:a,label:b", "0.png,-1,2"],
            {},
            "1 entries of 'label:a' are no counts, the first is '-1' in line 2;",
        ),
        (["path,label:a", "", "0.png,1", "1.png,x"], {}, "the first is 'x' in line 4;"),
        (
            ["path,label:a", "0.png,1", "https://x.org/a.png,1"],
            {},
            "1 images are at a URL, .* https://x.org/a.png; dow",
        ),
        (
            ["path,size", "0.png,3"],
            {},
            "list.csv has no vote_column; pass the names, or label_columns",
        ),
        (
            ["path,label:a,label:b,split", "0.png,1,2,train", "1.png,1,2,tset"],
            {},
            "column 'split' .* 1 entries are no train, .* 'tset'; re",
        ),
        (["path,label:a,label:b,split", "0.png,1,2,train"], {}, "no instance is in the set 'test'"),
        (["path,rater,label,group", "0.png,a,x,1", "0.png,b,y,2"], {}, "1 images have several entries of 'group'"),
        (["path,label:a,label:b", "0.png,1,2"], {"split_column": "splt"}, "no key 'splt'"),
        (["path,label:a,label:b,Split", "0.png,1,2,train"], {}, "no instance is in the set 'test'"),
        (["path,label:a,label:b,fold", "0.png,1,2,3"], {}, "column 'fold' is named like a published split, .* is '3';"),
        (
            ["path,label:a,label:b,split,set", "0.png,1,2,a,b"],
            {},
            "each of 'split', 'set' may be the split; choose one",
        ),
        (["path,label:a,label:b", "0.png,1,2"], {"protocol": "published"}, "give its column with data.split_column"),
        (["path,label:a,label:b", "0.png,.1,.9", "1.png,.1,.2"], {}, "shares of 1.png sum to 0.3, and .* 0.png to 1;"),
    ],
)
def test_wrong_lists_are_refused(lines: list[str], options: Any, message: str, tmp_path: Path) -> None:
    for number in range(2):
        image(tmp_path / f"{number}.png", 0.5, number)
    with pytest.raises(LDLError, match=message):
        made(write_lines(tmp_path / "list.csv", lines), **options)


def test_a_repeated_image_of_a_value_is_refused(tmp_path: Path) -> None:
    image(tmp_path / "0.png", 0.5)
    file = write_lines(tmp_path / "list.csv", ["path,value", "0.png,1", "0.png,2"])
    with pytest.raises(LDLError, match="1 rows repeat an image, the first is 0.png; keep one row an image"):
        made(file, ImageValues)
    with pytest.raises(LDLError, match="nor is there one in the working folder"):
        made(Path("absent.csv"))
    with pytest.raises(LDLError, match="a list of images is a .csv or Parquet file, or a folder"):
        made(write_lines(tmp_path / "list.txt", ["path"]))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("group", ["patient", "subject", "Patient ID", "case_id", "participant"])
@pytest.mark.parametrize("apart", [False, True])
def test_usual_groups_keep_images_apart(group: str, apart: bool, tree: Path, tmp_path: Path) -> None:
    root = shutil.copytree(tree, tmp_path / "tree")
    lines = (root / "long.csv").read_text().splitlines()
    votes_file = write_lines(root / "votes.csv", [f"path,user,label,{group}", *lines[1:]])
    listed = write_lines(root / "list.csv", ["path", *(file for file, _, _ in votes())]) if apart else votes_file
    data = made(listed, votes=str(votes_file) if apart else None)
    assert (data.group_key, data.protocol, data.leak) == (group, "group_exclusive", 0)
    assert data.groups.tolist() == [f"p{row // 2}" for row in range(24)] and data.annotations.raters is not None
    assert made(listed, votes=str(votes_file) if apart else None, group_key=group).group_key == group
    with pytest.raises(LDLError, match="no key 'who'|has a column 'who'; correct data.group_key"):
        made(listed, votes=str(votes_file) if apart else None, group_key="who")


def test_a_protocol_that_uses_no_split_takes_any_entries_there(tree: Path, tmp_path: Path) -> None:
    root = shutil.copytree(tree, tmp_path / "tree")
    lines = [f"{file},{number},{number % 5 or ''}" for number, (file, _, _) in enumerate(votes())]
    file = write_lines(root / "list.csv", ["path,value,fold", *lines])
    with pytest.raises(LDLError, match="which is no name|is named like a published split"):
        made(file, ImageValues)
    data = made(file, ImageValues, protocol="random_kfold")
    assert data.protocol == "random_kfold" and "protocol random_kfold does not use 'fold'" in data.taken


def test_the_only_rater_of_an_image_may_be_its_group(tree: Path, tmp_path: Path) -> None:
    root = shutil.copytree(tree, tmp_path / "tree")
    lines = [f"{file},w{number // 3},{number % 2}" for number, (file, _, _) in enumerate(votes())]
    file = write_lines(root / "single.csv", ["path,worker,label", *lines])
    data = made(file, label_type="nominal", group_key="worker", val_fraction=0.3)
    assert (data.protocol, data.leak, len(set(data.groups))) == ("group_exclusive", 0, 8)
    assert made(file, label_type="nominal").groups is None
    file = write_lines(
        root / "several.csv", ["path,worker,label", *lines, *(f"{line}".replace(",w", ",v") for line in lines)]
    )
    with pytest.raises(LDLError, match="24 images have several entries of 'worker', .*give each image one"):
        made(file, label_type="nominal", group_key="worker")


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_votes_that_are_read_by_options(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = shutil.copytree(tree, tmp_path / "tree")
    single = [f"{Path(file).name},{number % 3}" for number, (file, _, _) in enumerate(votes())]
    file = write_lines(root / "images/labels.csv", ["filename,label", *single])
    data = made(file, label_type="nominal")
    assert (data.labels.kind, data.labels.names, data.size) == ("nominal", ("0", "1", "2"), 24)
    assert data.columns["votes"].tolist() == [1] * 24 and data.columns["target"].sum(0).tolist() == [8, 8, 8]
    assert "1 votes an item, raters unknown" in capsys.readouterr().out
    assert made(file, no_vote="2").size == 16 and made(file, label_order=["2", "1", "0"]).labels.names[0] == "2"
    again = write_lines(root / "images/again.csv", ["filename,label", *single, "absent.png,1", single[0]])
    listed = write_lines(root / "images/list.csv", ["path", *(line.partition(",")[0] for line in single)])
    with pytest.raises(LDLError, match="1 of 25 items with votes are not in .*list.csv, the first is 'absent.png'"):
        made(listed, votes=str(again))
    dropped = made(listed, votes=str(again), unknown_items="drop")
    assert dropped.size == 24 and dropped.columns["votes"].tolist() == [2, *[1] * 23]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("names", "values"), [(("1", "2", "10"), (1, 2, 10)), (("star-1", "star-2"), (1, 2))])
def test_folders_of_numbers_are_a_scale(names: tuple[str, ...], values: tuple[float, ...], tmp_path: Path) -> None:
    for number in range(6):
        image(tmp_path / names[number % len(names)] / f"{number}.png", number / 6, number)
    data = made(tmp_path, folds=2, val_fraction=0.0)
    assert data.labels.axes == (tuple(map(float, values)),)
    assert made(tmp_path, folds=2, val_fraction=0.0, label_type="nominal").labels.kind == "nominal"
