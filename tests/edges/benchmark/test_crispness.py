"""Crispness: thick lines and lines beside their place, worked out by hand; thin maps lose nothing."""

from __future__ import annotations

import json
from pathlib import Path

import fake_edges
import numpy as np
import pytest

from ldl.edges.benchmark.crispness import crispness, evaluate_crisp
from ldl.edges.benchmark.evaluation import evaluate, write_edge_map
from ldl.edges.benchmark.ground_truth import GroundTruth
from ldl.edges.benchmark.scores import scores
from ldl.edges.benchmark.thinning import thin
from ldl.edges.evaluation import main

LINE = np.arange(20) == 10
REACH = 1.5 / np.hypot(20, 20)


def upright(profile: dict[int, float]) -> np.ndarray:
    """A map (20, 20) whose every row has these strengths by column."""
    return np.tile([profile.get(x, 0.0) for x in range(20)], (20, 1))


@pytest.mark.parametrize(
    ("profile", "ods", "stricter", "ac"),
    [
        # Found whole, and of three pixels two are errors: F of 1/3 and 1. Thinned, nothing would be wrong.
        ({9: 0.8, 10: 0.8, 11: 0.8}, 0.5, [0.5, 0.5], 1.0),
        # Above its slopes the line is one pixel wide; half the mass lies on them.
        ({9: 0.5, 10: 1.0, 11: 0.5}, 1.0, [1.0, 1.0], 0.5),
        # A pixel off: within 1.5 pixels, not within 0.75.
        ({11: 1.0}, 1.0, [0.0, 0.0], 1.0),
        # Where the line is strong it is a pixel off; of both pixels one is right.
        ({10: 0.25, 11: 0.75}, 1.0, [2 / 3, 2 / 3], 0.75),
    ],
)
def test_lines_by_hand(profile: dict[int, float], ods: float, stricter: list[float], ac: float) -> None:
    truth = GroundTruth(np.tile(LINE, (1, 20, 1)), None)
    # At a distance of 1.5 all pixels of the first map are near enough, and one of a row is assigned.
    measured, more = evaluate_crisp(["a"], lambda name: (upright(profile), truth), max_dist=REACH, levels=9)
    assert scores(measured.thresholds, measured.counts)["ods"] == pytest.approx(ods)
    assert [figures["ods"] for figures in more["stricter"].values()] == pytest.approx(stricter, abs=1e-9)
    assert more["ac"] == pytest.approx(ac)


def test_thin_maps_lose_nothing() -> None:
    rng = np.random.default_rng(0)
    maps = {name: thin(rng.random((40, 50)) < 0.3) * strength for name, strength in (("a", 0.4), ("b", 0.9))}
    truth = GroundTruth(np.stack([thin(rng.random((40, 50)) < 0.2) for _ in range(3)]), None)
    standard = evaluate(["a", "b"], lambda name: (maps[name], truth))
    crisp, _ = evaluate_crisp(["a", "b"], lambda name: (maps[name], truth))
    for one, other in zip(standard.counts, crisp.counts):
        np.testing.assert_array_equal(one, other)


def test_an_empty_map_is_crisp() -> None:
    assert crispness(np.zeros((9, 9))) == 1


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    fake_edges.write_truth(tmp_path / "gt" / "a.mat", [np.tile(LINE, (20, 1))])
    write_edge_map(tmp_path / "pred" / "a.png", upright({9: 0.8, 10: 0.8, 11: 0.8}))
    folders = ["--pred", str(tmp_path / "pred"), "--gt", str(tmp_path / "gt"), "--max_dist", str(REACH)]
    standard, crisp = tmp_path / "standard.json", tmp_path / "crisp.json"
    main([*folders, "--out", str(standard)])
    main([*folders, "--out", str(crisp), "--crisp"])
    assert capsys.readouterr().out.splitlines()[1].startswith("ods 0.5000 ois 0.5000")
    found, plain = json.loads(crisp.read_text()), json.loads(standard.read_text())
    assert set(found) - set(plain) == {"ac", "stricter"} and plain["ods"] > 0.9
    assert list(found["stricter"]) == [f"{REACH / 2:g}", f"{REACH / 4:g}"]
