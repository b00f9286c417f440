"""Tables that stay on disk: the same numbers as from memory, whatever they lie in, and the same refusals."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch
from pyarrow import parquet

from ldl.data import TabularLDL, TabularValues, storage
from ldl.data.storage import LazyColumn, RowFile
from ldl.data.tables.reading import read_table, read_values
from ldl.errors import LDLError
from ldl.tables import parquet as parquet_tables

RNG = np.random.default_rng(0)
SIZE = 700
X = np.column_stack([RNG.normal(3, [1, 10, 1e-3, 5], (SIZE, 4)), np.full(SIZE, 0.1)]).astype(np.float32)
D = (RNG.dirichlet(np.ones(3), SIZE) * RNG.uniform(0.9995, 1.0005, (SIZE, 1))).astype(np.float32)
GROUPS = RNG.integers(0, 40, SIZE)
AGES = RNG.integers(0, 60, SIZE).astype(np.float64)

Save = Callable[..., Path]


def save_npz(folder: Path, **arrays: Any) -> Path:
    np.savez(folder / "t.npz", **arrays)
    return folder / "t.npz"


def save_packed(folder: Path, **arrays: Any) -> Path:
    np.savez_compressed(folder / "t.npz", **arrays)
    return folder / "t.npz"


def save_folder(folder: Path, **arrays: Any) -> Path:
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    return folder


def save_parquet(folder: Path, **arrays: Any) -> Path:
    columns = {f"x{number}": column for number, column in enumerate(arrays.pop("features").T)}
    columns |= {f"label:{number}": column for number, column in enumerate(arrays.pop("labels", D[:, :0]).T)}
    # By their text, as those of a .csv: the same order where all are of one length.
    table = pa.table({**columns, **({"group": [f"{n:03}" for n in arrays.pop("group")]} if "group" in arrays else {})})
    for name, array in arrays.items():
        table = table.append_column(name, pa.array(array))
    for number, start in enumerate((0, 300, 333)):
        stop = (300, 333, SIZE)[number]
        parquet.write_table(table.slice(start, stop - start), folder / f"part-{number}.parquet", row_group_size=100)
    return folder


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(storage, "BLOCK_BYTES", 40 * 64)
    monkeypatch.setattr(parquet_tables, "BLOCK_ROWS", 77)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))


def opened(path: Path, data: type[TabularLDL] | type[TabularValues] = TabularLDL, **options: Any) -> Any:
    made = data(str(path), **options)
    made.setup()
    return made


@pytest.mark.parametrize(
    ("save", "scaling"),
    [(save_npz, "standard"), (save_packed, "standard"), (save_folder, "quantile_normal"), (save_parquet, "standard")],
)
def test_the_same_numbers_as_from_memory(tmp_path: Path, save: Save, scaling: str) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "disk").mkdir()
    arrays = {"features": X, "labels": D, "group": GROUPS}
    whole = opened(save_npz(tmp_path / "memory", **arrays), scaling=scaling, fold=3)
    disk = opened(save(tmp_path / "disk", **arrays), scaling=scaling, fold=3, in_memory=0)
    assert isinstance(disk.features, RowFile) and isinstance(disk.scaled, LazyColumn)
    for part in ("train", "val", "test"):
        np.testing.assert_array_equal(getattr(disk.split, part), getattr(whole.split, part))
    rows = torch.from_numpy(RNG.permutation(SIZE))
    for name in ("target", "group"):
        assert torch.equal(disk.columns[name][rows], whole.columns[name][rows]), name
    # As a loader process has it.
    assert torch.equal(pickle.loads(pickle.dumps(disk.scaled))[rows], whole.scaled[rows])
    assert disk.scaler.learned.keys() == whole.scaler.learned.keys()
    assert all(np.array_equal(disk.scaler.learned[name], whole.scaler.learned[name]) for name in disk.scaler.learned)
    small = opened(save(tmp_path / "disk", **arrays), scaling=scaling, fold=3)
    assert torch.equal(small.scaled, whole.scaled)


def test_missing_and_histograms_are_scaled_the_same(tmp_path: Path) -> None:
    features = np.abs(X).astype(np.float64)
    features[RNG.random(X.shape) < 0.1] = np.nan
    features[:, 3] = np.nan
    save_folder(tmp_path, features=features, labels=D)
    for scaling in ("standard", "ranks", "hellinger", "quantile_uniform"):
        options = {"scaling": scaling, "missing": "keep"}
        whole, disk = opened(tmp_path, **options), opened(tmp_path, **options, in_memory=0)
        assert disk.has_missing
        for name, learned in disk.scaler.learned.items():
            np.testing.assert_allclose(learned, whole.scaler.learned[name], rtol=1e-13 * (scaling == "hellinger"))
        torch.testing.assert_close(disk.scaled[torch.arange(SIZE)], whole.scaled, rtol=1e-6, atol=0, equal_nan=True)


@pytest.mark.parametrize("save", [save_folder, save_parquet])
def test_values_are_laid_out_when_they_are_asked_for(tmp_path: Path, save: Save) -> None:
    path = save(tmp_path, features=X, age=AGES, group=GROUPS)
    whole, disk = opened(path, TabularValues), opened(path, TabularValues, in_memory=0)
    rows = torch.from_numpy(RNG.permutation(SIZE))
    assert torch.equal(disk.columns["target"][rows], whole.columns["target"][rows])
    assert torch.equal(disk.columns["value"], whole.columns["value"])
    assert torch.equal(disk.scaled[rows], whole.scaled[rows])


def test_parquet_is_written_once_and_anew_where_it_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_parquet(tmp_path, features=X, labels=D)
    own = {"cache_dir": str(tmp_path / "mine"), "in_memory": 0}
    opened(tmp_path, **own)
    assert f"writing 700 rows of {tmp_path} into {tmp_path / 'mine'}" in capsys.readouterr().out
    opened(tmp_path, **own)
    assert "writing" not in capsys.readouterr().out
    os.utime(tmp_path / "part-1.parquet", (1, 1))
    opened(tmp_path, **own)
    assert "writing" in capsys.readouterr().out
    (tmp_path / "file").write_text("")
    with pytest.raises(LDLError, match="set data.cache_dir or LDL_CACHE"):
        opened(tmp_path, cache_dir=str(tmp_path / "file"), in_memory=0)


def test_large_integers_are_rounded(tmp_path: Path) -> None:
    numbers = [2**53 + 1, -(2**62) - 1, None]
    table = pa.table({"x": numbers, "y": [True, False, None], "label:a": [1.0, 1.0, 1.0]})
    parquet.write_table(table, tmp_path / "t.parquet")
    expected = [[2.0**53, 1], [-(2.0**62), 0], [np.nan, np.nan]]
    np.testing.assert_array_equal(read_table(tmp_path / "t.parquet", missing=True).features, expected)


@pytest.mark.parametrize("name", [None, "picture", "person"])
def test_the_index_of_pandas_is_no_feature(tmp_path: Path, name: str | None) -> None:
    frame = pd.DataFrame({"x": [1.0, 2, 3, 4], "age": [5.0, 6, 7, 8], "label:a": 1.0}).iloc[[0, 2, 3]]
    frame = frame.rename_axis(name)
    frame.to_parquet(tmp_path / "t.parquet")
    frame.drop(columns="label:a").to_parquet(tmp_path / "v.parquet")
    table, values = read_table(tmp_path / "t.parquet"), read_values(tmp_path / "v.parquet")
    assert (table.columns, values.columns) == (["x", "age"], ["x"])
    for groups in (table.groups, values.groups):
        assert (None if groups is None else groups.tolist()) == (["0", "2", "3"] if name == "person" else None)


def test_what_is_wrong_is_named_with_file_row_and_column(tmp_path: Path) -> None:
    features, labels = X.copy(), D.copy()
    features[350, 1] = np.inf
    save_parquet(tmp_path, features=features, labels=labels)
    # float32 holds no 1e100, which is not to make infinities pass.
    with pytest.raises(LDLError, match=r"part-2.parquet: features row 17, column 'x1' is inf; every entry must be"):
        opened(tmp_path, in_memory=0)
    labels[310] = [0.5, 0.6, -0.1]
    save_parquet(tmp_path, features=X, labels=labels)
    with pytest.raises(LDLError, match=r"part-1.parquet: distribution row 10, label 2 is -0.1; mass must not"):
        opened(tmp_path, in_memory=0)
    labels[310] = [0.5, 0.6, 0.0]
    save_parquet(tmp_path, features=X, labels=labels)
    with pytest.raises(LDLError, match=r"part-1.parquet: distribution row 10 sums to 1.1, not 1 \(1 such rows\)"):
        opened(tmp_path, in_memory=0)
    assert opened(tmp_path, in_memory=0, normalize=True).columns["target"][torch.tensor([310])].sum() == 1
    parquet.write_table(pa.table({"x": ["a"], "label:a": [1.0]}), tmp_path / "text.parquet")
    with pytest.raises(LDLError, match="text.parquet: column 'x' is str 'a' and such, not numbers"):
        opened(tmp_path / "text.parquet", in_memory=0)
    with pytest.raises(LDLError, match="text.parquet and .*part-0.parquet differ in column 'label:0'"):
        opened(tmp_path)
    table = pa.table({"x": [1, 2], "label:a": [1.0, 1.0], "person": ["a", None]})
    parquet.write_table(table, tmp_path / "group.parquet")
    with pytest.raises(LDLError, match="the group, column 'person', of row 1 is missing or no name"):
        opened(tmp_path / "group.parquet")


def test_damaged_files_are_named_and_leave_no_table_behind(tmp_path: Path) -> None:
    for path, start in (
        (save_parquet(tmp_path, features=X, labels=D) / "part-1.parquet", 8),
        (save_packed(tmp_path, features=X, labels=D), 80),
    ):
        content = bytearray(path.read_bytes())
        content[start : start + 400] = bytes(400)
        path.write_bytes(content)
        with pytest.raises(LDLError, match=f"{path.name} cannot be read as"):
            opened(tmp_path if path.suffix == ".parquet" else path, in_memory=0)
    assert not list((tmp_path / "cache" / "tables").glob("*/*.npy"))
    with pytest.raises(LDLError, match="no data file at .*none.parquet; give --data.path"):
        opened(tmp_path / "none.parquet")


def test_files_that_are_no_rows_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="holds no table; give .npy files, such as features.npy and labels.npy, or Parq"):
        opened(tmp_path)
    np.save(tmp_path / "labels.npy", D)
    with pytest.raises(LDLError, match="labels.npy is one matrix of a table; give the folder"):
        opened(tmp_path / "labels.npy")
    with pytest.raises(LDLError, match="no features under .* it has 'labels': pass --data.feature_key"):
        opened(tmp_path)
    np.save(tmp_path / "features.npy", np.asfortranarray(X))
    with pytest.raises(LDLError, match="features.npy has its columns one after the other"):
        opened(tmp_path)
    np.save(tmp_path / "features.npy", X)
    with (tmp_path / "features.npy").open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(
        LDLError, match="features.npy cannot be read as .npy: it claims numbers of shape .700, 5., 14000 bytes"
    ):
        opened(tmp_path)
    (tmp_path / "features.npy").write_text("1,2,3")
    with pytest.raises(LDLError, match="features.npy cannot be read as .npy"):
        opened(tmp_path)
    np.save(tmp_path / "features.npy", np.array([None]))
    with pytest.raises(LDLError, match="features.npy is an array of Python objects"):
        opened(tmp_path)


def test_a_file_may_be_larger_than_memory(tmp_path: Path) -> None:
    with (tmp_path / "rows.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (2**36, 16)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 2**42)  # sparse: it takes no room
    rows = RowFile.open(tmp_path / "rows.npy")
    assert not rows[:2].any() and not rows[np.array([2**36 - 1, 0])].any() and not next(rows.blocks())[1].any()
    assert not rows.map("r+")[-1].any()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that reads of a file ask for."""
    found: list[int] = []
    read = RowFile.__getitem__

    def counted(self: RowFile, rows: slice | np.ndarray) -> np.ndarray:
        found.append(0 if isinstance(rows, slice) else len(rows))
        return read(self, rows)

    monkeypatch.setattr(RowFile, "__getitem__", counted)
    return found


def test_batches_are_those_from_memory_and_read_ahead(
    tmp_path: Path, reads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "READ_AHEAD_BYTES", 5 * 32 * 5 * 4)
    save_folder(tmp_path, features=X, labels=D)
    whole, disk = (opened(tmp_path, batch_size=32, in_memory=in_memory) for in_memory in (256, 0))
    reads.clear()
    for number, (batch, known) in enumerate(zip(disk.train_dataloader(), whole.train_dataloader(), strict=True)):
        assert all(torch.equal(batch[name], known[name]) for name in known)
        if number == 3:  # validation in the middle of an epoch
            for other in disk.val_dataloader():
                assert torch.equal(other["input"], disk.scaled[other["index"]])
    assert 160 in reads
    # Rows that are not those read ahead.
    disk.scaled.prefetch_rows(np.arange)
    rows = torch.tensor([5, 3, 399])
    assert torch.equal(disk.scaled[rows], whole.scaled[rows])


@pytest.mark.parametrize("mapped", [2**26, 24 * 50, 1])
def test_rows_are_mapped_part_by_part(mapped: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAPPED_BYTES", mapped)
    np.save(tmp_path / "rows.npy", X)
    file = RowFile.open(tmp_path / "rows.npy")
    for rows in (RNG.integers(0, SIZE, 900), RNG.permutation(SIZE)[:7], np.array([SIZE - 1]), np.empty(0, np.int64)):
        np.testing.assert_array_equal(file[rows], X[rows])
