"""CSV files: lines are counted alike, and the five readers of them say the same about the same mistake."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldl.bags.bags import read_bags
from ldl.data.tables.reading import read_table, read_values
from ldl.errors import LDLError
from ldl.faces import FaceFolder
from ldl.faces.morph_lists import read_list
from ldl.tables import csv_table
from ldl.tables.csv_table import parse_csv, read_csv


def write(folder: Path, content: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


READERS: dict[str, tuple[Callable[[Path], Any], str, list[str]]] = {
    "distributions": (read_table, "label:a,x", ["1,3", "1,4"]),
    "values": (read_values, "age,x", ["20,3", "30,4"]),
    "bags": (read_bags, "label,bag,x", ["1,a,3", "0,b,4"]),
    "faces": (lambda path: FaceFolder(path=str(path)).read(), "age,path", ["20,a.png", "30,b.png"]),
    "list": (read_list, "fold,filename", ["0,000001_0M20.JPG", "1,000002_0M30.JPG"]),
}
"""Reader, header, and two rows; the first column holds numbers."""


@pytest.mark.parametrize("reader", READERS)
def test_all_readers_say_the_same(reader: str, tmp_path: Path) -> None:
    read, header, (first, second) = READERS[reader]
    read(write(tmp_path, "\n".join([header, first, second])))
    name, width = header.split(",")[0], header.count(",") + 1

    def said(content: str | bytes) -> str:
        with pytest.raises(LDLError) as error:
            read(write(tmp_path, content))
        return str(error.value).removeprefix(str(tmp_path / "t.csv"))

    # An empty line is a line, too.
    assert said(f"{header}\n{first}\n\n{second},5\n") == f": line 4 has {width + 1} fields, line 1 has {width}"
    assert said(f"{header}\n{first},5\n") == f": line 2 has {width + 1} fields, line 1 has {width}"
    wrong = second.replace(second.split(",")[0], "much", 1)
    assert said(f"{header}\n{first}\n\n{wrong}\n") == f": line 4, column {name!r} is 'much', not a finite number"
    empty = second.replace(second.split(",")[0], " ", 1)
    assert said(f"{header}\n{empty}\n") == f": line 2, column {name!r} is '', not a finite number"
    doubled = said(f"{header},{name}\n{first},1\n")
    assert doubled == f": column {name!r} is there twice; give every column a name of its own"
    assert said(f"{header}\n{first}\n".encode() + b"\xe4,1\n") == (
        f" is no text in UTF-8: byte {len(header) + len(first) + 2} is 0xe4, in line 3; save it as UTF-8"
    )


def test_missing_columns_are_named_with_what_was_meant(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"no column 'label'; did you mean 'labels'\?; its columns are labels, bag, x"):
        read_bags(write(tmp_path, "labels,bag,x\n1,a,3\n"))


@pytest.mark.parametrize("reader", ["distributions", "values", "bags"])
def test_row_numbers_of_pandas_are_no_feature(reader: str, tmp_path: Path) -> None:
    read, header, rows = READERS[reader]
    with pytest.raises(LDLError, match="t.csv: column 1 has no name; give it one, or leave it out: .*index=False"):
        read(write(tmp_path, "\n".join([f",{header}", *(f"{n},{row}" for n, row in enumerate(rows))])))


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_lines_are_counted_as_an_editor_does(ends: str, mark: str, tmp_path: Path) -> None:
    lines = [mark + "", " name , x", "", 'one,"1', '5"', ",", "two,2"]
    table = read_csv(write(tmp_path, ends.join(lines)))
    assert table.header == ["name", "x"]
    assert [table.column(name) for name in table.header] == [["one", "two"], ["1\n5", "2"]]
    assert table.lines.tolist() == [4, 7]
    with pytest.raises(LDLError, match=r"line 4, column 'x' is '1\\n5', not a finite number"):
        table.numbers(["x"])


def test_blanks_may_stand_between_columns(tmp_path: Path) -> None:
    table = read_csv(write(tmp_path, "a b\n0 1\n3\t4\n"), blanks=True)
    np.testing.assert_array_equal(table.numbers(["b", "a"]), [[1, 0], [4, 3]])
    assert read_csv(write(tmp_path, "a b,c\n1,2\n"), blanks=True).header == ["a b", "c"]
    assert read_csv(write(tmp_path, "1 2\n"), lambda first: False, blanks=True).header == ["1", "2"]


def test_a_frame_has_numbers_where_all_are(tmp_path: Path) -> None:
    frame = read_csv(write(tmp_path, "a,b,c\n1,x,\n,y,2.5\n")).frame(["c", "b"])
    assert frame["c"].isna().tolist() == [True, False] and frame["b"].tolist() == ["x", "y"]


def test_what_cannot_be_parted_or_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"t.csv: line 2 cannot be read as CSV: field larger"):
        read_csv(write(tmp_path, "a\n" + "x" * 200000))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(LDLError, match=r"no file at .*folder.csv, which is a folder"):
        read_csv(tmp_path / "folder.csv")


@pytest.mark.parametrize("reader", READERS)
def test_all_readers_read_tabs(reader: str, tmp_path: Path) -> None:
    read, header, rows = READERS[reader]
    path = tmp_path / "t.tsv"
    path.write_text("\n".join([header, *rows]).replace(",", "\t"))
    read(path)


def test_many_columns_are_told_apart_in_time(tmp_path: Path) -> None:
    """A comparison of each name with each other takes half a minute."""
    names = [f"label:{number}" for number in range(50_000)]
    table = read_csv(write(tmp_path, ",".join([*names, "a"]) + "\n" + "1," * 50_000 + "2\n"))
    begun = time.process_time()
    assert table.others(*names) == ["a"]
    assert time.process_time() - begun < 3


@pytest.mark.parametrize(
    "text",
    ["a,b\n1,2\n\n3,4", "a,b\n1,2\n , \n3,4\n", "\n\na , b\n1,2\n\t\n\n3,4\n\n", "a,b\r\n1,2\r\n\x0b\r\n3,4\r\n"],
    ids=["no end", "blank fields", "blank lines", "windows"],
)
def test_rows_are_the_same_with_and_without_quotes(text: str, tmp_path: Path) -> None:
    """The csv reader splits a file only if a field may span lines."""
    plain, quoted = (read_csv(write(tmp_path, content)) for content in (text, text.replace("4", '"4"')))
    assert plain.header == quoted.header == ["a", "b"]
    np.testing.assert_array_equal(plain.lines, quoted.lines)
    np.testing.assert_array_equal(plain.records, quoted.records)
    np.testing.assert_array_equal(plain.numbers(["a", "b"]), [[1, 2], [3, 4]])
    np.testing.assert_array_equal(quoted.numbers(["a", "b"]), [[1, 2], [3, 4]])


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_field_without_end_is_no_csv(quote: str, tmp_path: Path) -> None:
    with pytest.raises(LDLError, match=r"t\.csv: line 2 cannot be read as CSV: field larger than field limit"):
        read_csv(write(tmp_path, f"a,b\n{quote}{'x' * 200_000}{quote},2\n"))


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(["a", "1", ",", ",", "\n", "\n", '"', '"', '""', " ", "\xa0", "é", "\x1c"]), max_size=40)
)
def test_rows_are_those_of_the_csv_reader(letters: list[str]) -> None:
    """Blocks of three bytes cut rows, quotes and letters of several bytes."""
    content = "".join(letters).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "BLOCK_BYTES", 3)
        patch.setattr(csv_table, "FIRST_BYTES", 2)
        rows = csv_table._find_rows(content, ",")
    expected = csv_table._read_rows(Path("t.csv"), content, ",")
    if rows is None:
        assert b'"' in content
        return
    assert rows.first == expected.first
    for name in ("records", "lines", "widths"):
        np.testing.assert_array_equal(getattr(rows, name), getattr(expected, name))


@pytest.mark.parametrize("field", ["a", '"a"', '"a\n"', '"a ""b"" c"', '"a,b"', '""', "é", '"é\n\n,"'])
def test_usual_quotes_need_no_csv_reader(field: str) -> None:
    assert csv_table._find_rows(f"x,y\n1,{field}\n{field},2\n".encode(), ",") is not None


@pytest.mark.parametrize("field", ['a "b"', ' "a"', '"a" b', '"a'])
def test_unusual_quotes_are_read_by_the_csv_reader(field: str) -> None:
    assert csv_table._find_rows(f"x,y\n1,{field}\n".encode(), ",") is None
    if field != '"a':
        table = parse_csv(Path("t.csv"), f"x,y\n\n1,{field}\n3,4\n".encode())
        assert len(table) == 2 and table.lines.tolist() == [3, 4] and table.column("x") == ["1", "3"]


def test_an_error_behind_a_line_break_in_quotes_names_the_line(tmp_path: Path) -> None:
    table = read_csv(write(tmp_path, 'x,y\n"a\n\nb",1\n\nc,2\nd,high\n'))
    with pytest.raises(LDLError, match="line 7, column 'y' is 'high', not a finite number"):
        table.numbers(["y"])


def test_the_first_wrong_row_is_named_whatever_its_column(tmp_path: Path) -> None:
    table = read_csv(write(tmp_path, "x,y\n1,2\n3,high\ninf,4\n"))
    with pytest.raises(LDLError, match="line 3, column 'y' is 'high'"):
        table.numbers(["x", "y"])


def test_a_column_is_read_as_a_whole(tmp_path: Path) -> None:
    """pandas reads blocks of some hundred thousand bytes, here whole numbers, truth values, fractions, and text."""
    rows = ["7,1,1,007"] * 300_000 + ["0.5,True,high,8"] + ["18446744073709551616,1,high,NA"]
    table = read_csv(write(tmp_path, "a,b,c,d\n" + "\n".join(rows) + "\n"))
    np.testing.assert_array_equal(table.numbers(["b", "a"])[[0, -2, -1]], [[1, 7], [1, 0.5], [1, 2.0**64]])
    with pytest.raises(LDLError, match="line 300002, column 'c' is 'high'"):
        table.numbers(["c"])
    assert table.column("d")[-3:] == ["007", "8", "NA"]
    with pytest.raises(LDLError, match="line 300003, column 'd' is 'NA', which is no name of a group"):
        table.groups("d")


def test_groups_have_one_spelling(tmp_path: Path) -> None:
    table = read_csv(write(tmp_path, 'g\n007\n7\n 7.0\n-0\n7.10\n٣\n"a "\n'))
    assert table.groups("g").tolist() == ["007", "7", "7", "0", "7.10", "٣", "a"]
