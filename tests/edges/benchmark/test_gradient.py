"""Gradient magnitude: the scale of its strengths, and its place on the benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldl.data.edges.bsds500 import list_part
from ldl.data.edges.images import truth_of
from ldl.data.pictures import read_picture
from ldl.edges.benchmark.evaluation import evaluate
from ldl.edges.benchmark.gradient import gradient_magnitude
from ldl.edges.benchmark.ground_truth import read_ground_truth
from ldl.edges.benchmark.nms import suppress
from ldl.edges.benchmark.scores import scores


@pytest.mark.parametrize("height", [0, 60, 255])
@pytest.mark.parametrize("sigma", [1.0, 2.0])
def test_a_step_has_its_height_as_strength(height: int, sigma: float) -> None:
    picture = np.zeros((40, 40, 3), np.uint8)
    picture[:, 20:] = height
    for turned in (picture, picture.transpose(1, 0, 2)):
        strength = gradient_magnitude(turned, sigma)
        # A little less: the step lies between two pixels.
        assert 0.9 * height / 255 - 1e-12 <= strength.max() <= height / 255 + 1e-12
        assert strength[:3, :3].max() < 1e-6


def test_its_place_on_bsds(ldl_data: Path) -> None:
    """25 test images here; all 200 give ODS .604 (benchmarks/edges/baselines.py)."""
    folder = ldl_data / "BSDS500" / "data"
    if not folder.is_dir():
        pytest.skip("LDL_DATA has no BSDS500")
    images = {image.stem: image for image in list_part(folder, "test")[5::8]}
    measured = evaluate(
        list(images),
        lambda name: (
            suppress(gradient_magnitude(read_picture(images[name]))),
            read_ground_truth(truth_of(images[name])),
        ),
    )
    assert scores(measured.thresholds, measured.counts)["ods"] == pytest.approx(0.60, abs=0.04)
