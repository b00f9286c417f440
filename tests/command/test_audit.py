"""``ldl audit`` of votes: what annotators hold, as a user would call it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldl.command.console import command
from ldl.data import TabularLDL


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """150 items with the votes of 4 of 9 annotators in the long layout."""
    rng = np.random.default_rng(0)
    lines = ["task,worker,label"]
    for item in range(150):
        share = rng.dirichlet([0.5, 0.5, 0.5])
        lines += [f"{item:03d},w{rater},{'abc'[rng.choice(3, p=share)]}" for rater in rng.choice(9, 4, replace=False)]
    (tmp_path / "votes.csv").write_text("\n".join(lines))
    return tmp_path / "votes.csv"


def test_votes_are_audited(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(["audit", str(votes), "--layout", "long"])
    said = capsys.readouterr().out
    first = "items       long layout, 150 items, 3 nominal labels, 4 votes an item, 9 raters"
    assert said.startswith(f"{votes}\n{first}\nvotes       600, 4 an item in the median\n")
    assert "Krippendorff's alpha 0." in said
    results = [float(line.split()[-1]) for line in said.splitlines() if " others  " in line]
    assert len(results) == 4 and sorted(results, reverse=True) == results
    assert results[0] == pytest.approx(np.log(3), abs=0.05)
    assert "order       items look to be in random order: votes on items in successive rows agree" in said
    assert "groups      unknown; pass their column, such as --group_key patient" in said


def test_groups_order_and_chart(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = votes.read_text().splitlines()
    # Sorted by the label of the first vote, and five items a patient.
    items = [lines[row : row + 4] for row in range(1, len(lines), 4)]
    items.sort(key=lambda rows: sorted(row[-1] for row in rows))
    rows = [f"{row},p{number // 5}" for number, part in enumerate(items) for row in part]
    votes.write_text("\n".join([f"{lines[0]},patient", *rows]))
    command(["audit", str(votes), "--layout", "long", "--group_key", "patient", "--out", str(tmp_path / "charts")])
    said = capsys.readouterr().out
    assert "order       items look sorted or grouped" in said and "groups      30, of 5 to 5 items\n" in said
    assert said.endswith(f"chart       {tmp_path / 'charts' / 'rater_equivalence.png'}\n")
    assert (tmp_path / "charts" / "rater_equivalence.png").is_file()


def test_a_chart_needs_votes(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command(["audit", str(votes), "--out", str(tmp_path / "charts")])
    assert capsys.readouterr().out.endswith(f"chart       {tmp_path / 'charts' / 'rater_equivalence.png'}\n")
    (tmp_path / "a.csv").write_text("good,bad\n1,0\n0,1\n")
    np.savez(tmp_path / "b.npz", features=np.eye(9), labels=np.eye(9))
    for options, reason in (
        ([str(tmp_path / "a.csv"), "--label_columns", "good", "bad"], "none of 2 items has two votes"),
        ([str(tmp_path / "b.npz")], "--out is the folder of the chart of votes, and this file has none"),
    ):
        with pytest.raises(SystemExit):
            command(["audit", *options, "--out", str(tmp_path)])
        assert reason in capsys.readouterr().err


def test_shares_and_single_votes_have_no_agreement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for rows, reason in (("0.2,0.8\n0.5,0.5\n", "these are shares"), ("1,0\n0,1\n", "no item has two votes")):
        (tmp_path / "a.csv").write_text(f"good,bad\n{rows}")
        command(["audit", str(tmp_path / "a.csv"), "--label_columns", "good", "bad"])
        assert f"agreement   unknown: {reason}" in capsys.readouterr().out


def test_a_mistake_is_one_line(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command(["audit", str(votes), "--vote_column", "lable"])
    said = capsys.readouterr().err
    assert ended.value.code == 2 and said == f"error: {votes} has no column 'lable'; did you mean 'label'?\n"


def test_votes_are_found_below_the_data_folder(
    votes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LDL_DATA", str(votes.parent))
    command(["audit", votes.name, "--layout", "long"])
    assert capsys.readouterr().out.startswith(f"{votes}\nitems ")


def test_votes_without_features_need_no_option(votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "counts.csv").write_text("item,label:a,label:b\nx,1,2\ny,3,3\n")
    for path, layout in ((votes, "long"), (tmp_path / "counts.csv", "counts")):
        command(["audit", str(path), "--layout", layout])
        expected = capsys.readouterr().out
        command(["audit", str(path)])
        assert capsys.readouterr().out == expected and f"{layout} layout" in expected
    (tmp_path / "a.csv").write_text("item,rater,length\nx,1,2\n")
    with pytest.raises(SystemExit):
        command(["audit", str(tmp_path / "a.csv")])
    assert "needs rows, feature columns, and label columns" in capsys.readouterr().err


def said_of(capsys: pytest.CaptureFixture[str], *args: Any) -> str:
    command(["audit", *map(str, args)])
    return capsys.readouterr().out


def test_features_beside_votes_are_audited_as_the_run_reads_them(
    votes: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, lines = np.random.default_rng(1), votes.read_text().splitlines()
    sizes = {line.partition(",")[0]: f"{rng.normal():.4f},p{int(line[:3]) // 5}" for line in lines[1:]}
    rows = [f"{line},{sizes[line[:3]]}" for line in lines[1:]]
    votes.write_text("\n".join([f"{lines[0]},size,patient", *rows]))
    said = said_of(capsys, votes)
    data = TabularLDL(path=str(votes))
    data.setup()
    assert f"rows        {data.size}\nfeatures    1\n" in said and f"items       {data.annotations}\n" in said
    assert "groups      30, of 5 to 5 rows\nprotocol    group_exclusive: 0.0% of the test rows share" in said
    (tmp_path / "table.csv").write_text("\n".join(["item,size", *(f"{n:03d},{n}" for n in range(150))]))
    votes.write_text("\n".join(lines))
    assert "rows        150\nfeatures    1\n" in said_of(capsys, tmp_path / "table.csv", "--votes", votes)
    assert "run  " not in said_of(capsys, votes, "--layout", "long")


def test_a_run_that_stops_is_reported(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = votes.read_text().splitlines()
    votes.write_text("\n".join([f"{lines[0]},seconds", *(f"{line},{n}" for n, line in enumerate(lines[1:]))]))
    said = said_of(capsys, votes)
    assert "items       long layout, 150 items" in said
    assert "run         stops, so these lines are about the votes alone: " in said and "'seconds'" in said
    with pytest.raises(SystemExit):
        command(["audit", str(votes), "--data", "TabularLDL"])
    assert "'seconds'" in capsys.readouterr().err


def test_groups_of_votes_are_found(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = votes.read_text().splitlines()
    votes.write_text("\n".join([f"{lines[0]},patient_id", *(f"{line},p{int(line[:3]) // 5}" for line in lines[1:])]))
    assert "groups      30, of 5 to 5 items (column 'patient_id')\n" in said_of(capsys, votes)


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        ("task,worker,label", ["--group_key", "worker"], "items are in several groups of"),
        ("task,worker,label", ["--protocol", "random_kfold"], "without features, which have no use for --protocol; "),
        ("task,worker,label", ["--path_column", "tsk"], "no key 'tsk'"),
        ("task,worker,label", ["--group_key", "patient"], "no key 'patient'"),
        ("task,worker,label,patient,subject", [], "each of 'patient', 'subject' may be the group; choose one with --g"),
        ("task,worker,label", ["--path_column", "tsk", "--data", "ImageLDL"], "no key 'tsk'"),
        ("task,worker,label", ["--data", "ImageLDL"], "no image files under path, image"),
        ("task,worker,label", ["--votes", "absent.csv", "--data", "TabularLDL"], "absent.csv"),
        ("task,worker,label", ["--normalize", "perhaps"], "'perhaps' is neither true nor false"),
        ("task,worker,label", ["--duplicates", "all"], "duplicates 'all'"),
    ],
)
def test_messages_name_options_of_the_audit(
    header: str, options: list[str], message: str, votes: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = votes.read_text().splitlines()
    votes.write_text(
        "\n".join([header, *(line + ",p" * header.count(",p") + ",s" * header.count(",s") for line in lines[1:])])
    )
    with pytest.raises(SystemExit):
        command(["audit", str(votes), *options])
    said = capsys.readouterr().err
    assert message in said and said.count("\n") == 1
    assert not re.search(r"\bdata\.\w", said) and "TabularValues" not in said


def test_options_of_the_run_are_those_of_the_audit(votes: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = votes.read_text() + "\n149,w9,skip\n149,w10,a"
    votes.write_text(text.replace(",a", ",1").replace(",b", ",2").replace(",c", ",3"))
    for name, value in (("label_order", ["1", "2", "3"]), ("label_type", "nominal"), ("no_vote", ["skip"])):
        values = [value] if isinstance(value, str) else value
        more = [] if name == "no_vote" else ["--no_vote", "skip"]
        said = said_of(capsys, votes, f"--{name}", *values, *more)
        kind = "nominal" if name == "label_type" else "ordinal"
        assert f"labels      3 {kind}: 1, 2, 3\n" in said and "votes       601, " in said
    assert said_of(capsys, votes, "--order", "1", "2", "3", "--no_vote", "skip") == said_of(
        capsys, votes, "--label_order", "1", "2", "3", "--no_vote", "skip"
    )


def test_dropped_raters_and_labels_have_no_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "m.csv").write_text("item,r1,r2,r3\nx,a,b,b\ny,a,a,b\n")
    (tmp_path / "c.csv").write_text("item,label:a,label:b,label:c\nx,1,2,4\ny,3,3,4\n")
    assert "2 items, 2 nominal labels, 2 votes an item, 2 raters\n" in said_of(
        capsys, tmp_path / "m.csv", "--rater_columns", "r?", "--drop", "r1"
    )
    assert "2 items, 2 nominal labels, 3 to 6 votes an item\n" in said_of(
        capsys, tmp_path / "c.csv", "--drop", "label:c"
    )
