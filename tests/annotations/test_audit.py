"""``ldl audit`` of votes: what annotators hold, as a user would call it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldl.cli.command import command


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
    (tmp_path / "a.csv").write_text("good,bad\n1,0\n0,1\n")
    for options, reason in (
        ([str(tmp_path / "a.csv"), "--label_columns", "good", "bad"], "none of 2 items has two votes"),
        ([str(votes)], "--out is the folder of the chart of votes"),
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
