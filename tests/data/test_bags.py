"""Bags from tables: every check of the file, folds by bag, padding, and whole runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from places import ROOT

from ldl import charts
from ldl.cli import main
from ldl.data import Bags
from ldl.data.bags import read_bags
from ldl.errors import LDLError
from ldl.heads import Bagged, Softmax, StructRF
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
        (["1,a,1", "0,a,2"], "bag 'a' is both negative and positive; a bag has one label"),
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


@pytest.fixture
def no_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are drawn in tests of their own."""
    monkeypatch.setattr(charts, "overview", lambda *arguments: {})
    monkeypatch.setattr(charts, "learning_curves", lambda *arguments: None)


@pytest.mark.usefixtures("no_charts")
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
