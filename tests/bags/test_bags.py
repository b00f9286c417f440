"""Bags from tables: every check of the file, folds by bag, padding, and whole runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.paths import ROOT

from ldl.bags import Bagged, Bags
from ldl.bags.bags import read_bags
from ldl.command import main
from ldl.errors import LDLError
from ldl.heads import Softmax, StructRF
from ldl.task import Task

CONFIGS = ROOT / "configs/runs"
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """30 bags of 1 to 5 instances, positive where the first feature of one is large; rows in no order."""
    rng = np.random.default_rng(0)
    lines = []
    for bag in range(30):
        rows = rng.normal(size=(rng.integers(1, 6), 3))
        rows[0, 0] += 8 * (bag % 2)
        lines += [f"{bag % 2},bag{bag}," + ",".join(f"{number:.4f}" for number in row) for row in rows]
    rng.shuffle(lines)
    return write(tmp_path / "bags.csv", lines)


def test_rows_of_a_bag_may_lie_anywhere(tmp_path: Path) -> None:
    read = read_bags(write(tmp_path / "t.csv", ["1,a,1,2", "-1,b,3,4", "1,a,5,6"]))
    assert read.names == ["a", "b"] and read.label.tolist() == [1, 0]
    assert read.bag.tolist() == [0, 0, 1]
    assert read.features.tolist() == [[1, 2], [5, 6], [3, 4]]


def test_a_header_names_the_columns(tmp_path: Path) -> None:
    read = read_bags(write(tmp_path / "t.csv", ["size,bag,label,width", "1,a,0,2", "3,b,1,4"]))
    assert read.names == ["a", "b"] and read.label.tolist() == [0, 1]
    assert read.features.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1,a,1", "0,a,2"], "bag 'a' has several labels, 'positive' and 'negative'; give the rows of a bag one"),
        (["2,a,1"], r"line 1, column '1' is '2', no label: these are 0 or -1 \(negative\) and 1 \(positive\)"),
        (["1,a,1", "0, ,2"], "line 2, column '2' is '', no name of a bag; give every row one"),
        (["1,a"], "needs rows of label, bag and at least one feature"),
        (["label,id,x", "1,a,1"], "has no column 'bag'; its columns are label, id, x"),
        (
            ["y,id,x", "1,a,1"],
            "line 1, column '1' is 'y', not a finite number; a header must name the columns label and bag",
        ),
    ],
)
def test_wrong_tables_are_refused(lines: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=message):
        read_bags(write(tmp_path / "t.csv", lines))


def test_folds_take_whole_bags_of_both_kinds(table: Path) -> None:
    data = Bags(str(table), folds=5, val_fraction=0.2)
    data.setup()
    tested = []
    for fold in range(5):
        data.select_fold(fold)
        assert data.table.label[data.split.test].mean() == 0.5
        parts = [data.split.train, data.split.val, data.split.test]
        assert sorted(np.concatenate(parts)) == list(range(30)) and len(data.split.val) == 5
        tested += data.split.test.tolist()
    assert sorted(tested) == list(range(30))


def test_batches_are_padded_and_scaled_by_the_training_bags(table: Path) -> None:
    data = Bags(str(table), folds=5, batch_size=7)
    data.setup()
    counts = np.bincount(data.table.bag)
    seen = []
    for batch in data.fit_dataloader():
        assert batch["input"].shape[1:] == (counts.max(), 3)
        exists = ~batch["input"].isnan().any(-1)
        assert (exists == ~batch["input"].isnan().all(-1)).all()
        assert exists.sum(1).tolist() == counts[batch["index"]].tolist()
        assert batch["target"].argmax(1).tolist() == data.table.label[batch["index"]].tolist()
        seen.append(batch["input"][exists])
    rows = torch.cat(seen)
    torch.testing.assert_close(rows.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(rows.std(0, unbiased=False), torch.ones(3), atol=1e-5, rtol=0)


def grouped(path: Path, header: str = "", entry: Callable[[int], str] = str) -> Path:
    """24 bags of two instances, of which every third bag has a column of ``header`` in common."""
    rng = np.random.default_rng(1)
    more = f",{header}" if header else ""
    lines = [f"label,bag,x,y{more}"]
    for bag in range(24):
        for _ in range(2):
            x, y = rng.normal(size=2)
            lines.append(f"{bag % 2},b{bag},{x:.4f},{y:.4f}" + (f",{entry(bag)}" if header else ""))
    return write(path, lines)


@pytest.mark.parametrize("name", ["patient", "slide_id", "case_id", "Patient ID", "subject", "userId"])
def test_a_column_of_groups_is_no_feature_and_keeps_bags_apart(name: str, tmp_path: Path) -> None:
    file = grouped(tmp_path / "t.csv", name, lambda bag: str(100 + bag // 3))
    data = Bags(str(file), folds=4, val_fraction=0.2)
    data.setup()
    assert data.feature_names == ["x", "y"] and data.chosen["group_key"] == data.group_key == name
    assert (data.protocol, data.leaky, data.group_names) == ("group_exclusive", False, [str(100 + n) for n in range(8)])
    for fold in range(4):
        data.select_fold(fold)
        assert data.leak == 0 and not set(data.groups[data.split.val]) & set(data.groups[data.split.train])
    one_out = Bags(str(file), protocol="leave_one_group_out")
    one_out.setup()
    assert one_out.num_folds == 8 and one_out.groups[one_out.split.test].tolist() == ["100"] * 3
    leaking = Bags(str(file), protocol="kfold")
    leaking.setup()
    assert leaking.leaky is True and leaking.leak > 0


@pytest.mark.parametrize("name", ["instance_id", "bag_id", "id", "image", "example", "rater", "uuid"])
def test_a_name_of_something_else_is_no_feature(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = grouped(tmp_path / "t.csv", name, lambda bag: str(bag))
    data = Bags(str(file))
    data.setup()
    assert data.feature_names == ["x", "y"] and (data.protocol, data.leaky) == ("kfold", None)
    line = "label 'label', bag 'bag', 2 features 'x', 'y'; left out {!r}, unless --data.feature_columns names them"
    assert line.format(name) in capsys.readouterr().out
    chosen = Bags(str(file), feature_columns=["x", name])
    chosen.setup()
    assert chosen.feature_names == ["x", name]


def test_a_column_of_bags_may_be_an_id(tmp_path: Path) -> None:
    file = write(
        tmp_path / "t.csv",
        [line.replace("bag,", "bag_id,") for line in grouped(tmp_path / "a.csv").read_text().splitlines()],
    )
    assert read_bags(file).names == read_bags(tmp_path / "a.csv").names


@pytest.mark.parametrize("name", ["split", "set", "fold", "Usage"])
def test_a_column_of_sets_is_the_published_split(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sets = ["train", "Training", "dev", "TEST"]
    file = grouped(tmp_path / "t.csv", name, lambda bag: sets[bag % 4])
    data = Bags(str(file))
    data.setup()
    rows = np.arange(24)
    assert (data.protocol, data.num_folds, data.feature_names) == ("published", 1, ["x", "y"])
    assert data.split.train.tolist() == rows[rows % 4 < 2].tolist() and data.split.test.tolist() == rows[3::4].tolist()
    assert data.split.val.tolist() == rows[2::4].tolist()
    other = Bags(str(file), protocol="kfold")
    other.setup()
    assert "; protocol kfold does not use the split" in capsys.readouterr().out
    with pytest.raises(LDLError, match=f"column '{name}' is named like a published split, but 48 entries are no train"):
        Bags(str(grouped(tmp_path / "t.csv", name, lambda bag: str(bag % 5)))).setup()
    left = Bags(str(file), drop=[name])
    left.setup()
    assert left.protocol == "kfold"


@pytest.mark.parametrize("name", ["fold", "set"])
def test_a_protocol_that_uses_no_split_takes_any_numbers_there(name: str, tmp_path: Path) -> None:
    file = grouped(tmp_path / "t.csv", name, lambda bag: str(bag % 5))
    with pytest.raises(
        LDLError, match="rename or remove the column, correct it, or pass a data.protocol that does not use the split"
    ):
        Bags(str(file)).setup()
    data = Bags(str(file), protocol="kfold", folds=4)
    data.setup()
    assert data.feature_names == ["x", "y"] and "protocol kfold does not use the split" in data.taken


def test_a_table_in_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    with pytest.raises(LDLError, match=r"t\.parquet: bags are read from \.csv; write one, as by pandas"):
        Bags(str(tmp_path / "t.parquet")).setup()


def test_a_bag_and_its_group_have_one_spelling(tmp_path: Path) -> None:
    lines = [f"{bag % 2},{bag}{end},{bag},{bag // 2}{end}" for bag in range(8) for end in ("", ".0")]
    data = Bags(str(write(tmp_path / "t.csv", ["label,bag,x,patient", *lines])), folds=2)
    data.setup()
    assert (data.names, len(set(data.groups))) == (list("01234567"), 4)


def test_a_published_split_counts_its_leaks(tmp_path: Path) -> None:
    for patients, leak in ((12, 1), (24, 0)):
        sets = [f"{('train', 'test')[bag // 12]},{bag % patients}" for bag in range(24)]
        data = Bags(str(grouped(tmp_path / "t.csv", "split,patient", sets.__getitem__)), val_fraction=0.25)
        data.setup()
        assert (data.leak, data.leaky, len(data.split.val), len(data.split.test)) == (leak, True, 3, 12)


@pytest.mark.parametrize(
    ("header", "rows", "options", "message"),
    [
        ("label,bag,x,patient", ["1,a,1,p", "1,a,2,q"], {}, "bag 'a' has several entries of 'patient', 'p' and 'q'"),
        ("label,bag,x,split", ["1,a,1,train", "1,a,2,test"], {}, "bag 'a' has several entries of 'split'"),
        ("label,bag,x,patient,case", ["1,a,1,p,q"], {}, "each of 'patient', 'case' may be the group; choose one with"),
        ("label,bag,x,patient", ["1,a,1,"], {}, "column 'patient' is '', which is no name of a group"),
        ("label,bag,patient", ["1,a,1"], {}, "no column is a feature; name features with --data.feature_columns"),
        (
            "label,bag,x,note",
            ["1,a,1,q"],
            {},
            "'note' is 'q', not a finite number$",
        ),
        ("label,bag,x", ["1,a,1"], {"protocol": "group_exclusive"}, "no groups to keep apart; name their column"),
        ("label,bag,x", ["1,a,1"], {"protocol": "published"}, "no sets of a published split; name their column"),
        ("label,bag,x", ["1,a,1"], {"group_key": "pat"}, "no key 'pat'"),
    ],
)
def test_wrong_groups_and_sets_are_refused(
    header: str, rows: list[str], options: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(LDLError, match=message):
        Bags(str(write(tmp_path / "t.csv", [header, *rows])), **options).setup()


@pytest.mark.usefixtures("blank")
@pytest.mark.slow
def test_a_checkpoint_is_tested_and_takes_larger_bags(table: Path, tmp_path: Path) -> None:
    run = ["-c", str(CONFIGS / "bags_softmax.yaml"), *QUIET]
    main([*run, "--data.path", str(table), "--trainer.max_epochs=2", "--run_dir", str(tmp_path / "a")])
    (checkpoint,) = (tmp_path / "a/checkpoints").glob("last.ckpt")
    task = Task.load_from_checkpoint(checkpoint)
    assert isinstance(task.head, Bagged) and isinstance(task.head.head, Softmax) and task.head.head.hidden == [64]
    more = [f"1,bag1,{number},0,0" for number in range(9)]
    larger = write(tmp_path / "larger.csv", [*table.read_text().splitlines(), *more])
    stage = ["--stage=test", "--ckpt_path", str(checkpoint), "--run_dir", str(tmp_path / "b")]
    main([*run, "--data.path", str(larger), *stage])
    assert json.loads((tmp_path / "b/results.json").read_text())["mean"]["accuracy"] >= 0


def test_a_head_of_single_instances_is_refused(table: Path) -> None:
    data = Bags(str(table))
    data.setup()
    with pytest.raises(LDLError, match="Softmax takes single instances, and the data are bags; pool it with"):
        Task(Softmax()).build(data.labels, data.input_shape)
    with pytest.raises(LDLError, match="StructRF takes single instances, and the data are bags; use MILBoost$"):
        Task(StructRF()).build(data.labels, data.input_shape)


def test_the_real_tables(ldl_data: Path) -> None:
    musk, dogs = (read_bags(ldl_data / "mil" / name) for name in ("musk1.csv", "corel_dogs.csv"))
    assert (musk.features.shape, len(musk.names), int(musk.label.sum())) == ((476, 166), 92, 47)
    assert len(dogs.features) == 7947 and len(dogs.names) == 2000
