"""Edges of BSDS500: Tables I and IV and Figures 7 and 10 of Huang, Loy & Tang 2016.

Forests and results are stored in ``edges`` beside the items, and are not measured again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import load_file, save

from benchmarks.common.items import Claim, Number, Statement, Work, read_published
from ldl.checkpoint import replacing
from ldl.collective import Collective
from ldl.edges import StructuredEdges
from ldl.edges.benchmark.evaluation import evaluate, scores
from ldl.edges.benchmark.ground_truth import GroundTruth
from ldl.edges.benchmark.thinning import suppress
from ldl.edges.bsds500 import BSDS500
from ldl.edges.structured.channels import PATCH
from ldl.edges.structured.patches import make_scene
from ldl.jobs.store import Result, name_of

METRICS = ("ods", "ois", "ap")
PUBLISHED = read_published("dsna")

SCALES = (0.5, 1.0, 1.5)
ALL = {"votes": 8, "scales": SCALES}
KEPT = {"kept": 10}
STEPS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain": ({}, ALL),
    "2 classes of the same weight": ({"balance": 1.0}, ALL),
    "4 trees": ({"trees": 4}, {"votes": 4, "scales": SCALES}),
    "half by DSNA": ({"trees": 4, **KEPT}, {"votes": 4, "scales": SCALES, "dsna": True, "blend": 0.5}),
    "patches equally": (KEPT, {"dsna": True, "blend": 0.0}),
    "patches by DSNA": (KEPT, {"dsna": True}),
}
"""Options by which a forest grows, and options by which it is applied."""

SEEDS = 0.005
"""Least difference of two results of one seed that counts. Seeds differ by as much."""


def table_1(work: Work) -> Iterator[Claim]:
    """Table I, edges."""
    for name, step in (("RF", "plain"), ("CS-RF+DSNA", "half by DSNA")):
        ods, printed = _final(work, step)["ods"], PUBLISHED["table_1_edge"][name]
        yield Number(f"edges, {name}, ODS", (ods,), printed, lower=False, digits=2, baseline=name == "RF")
    plain, weighted = (_validated(work, name, 4)["ods"] for name in ("plain", "2 classes of the same weight"))
    claim = "edges, nodes that mind rare classes gain, on every 4th image of val"
    yield Statement(claim, weighted > plain + SEEDS, f"ODS {weighted:.3f}, plain {plain:.3f}", "0.76, plain 0.75")


def table_4(work: Work) -> Iterator[Claim]:
    """ODS, OIS and AP."""
    for name, step in (("SE", "plain"), ("CS-SE+DSNA", "half by DSNA")):
        row, published = _final(work, step), PUBLISHED["table_4"][name]
        for metric in METRICS:
            words, baseline = f"{name}, {metric.upper()}", name == "SE"
            yield Number(words, (row[metric],), published[metric], lower=False, digits=2, baseline=baseline)
    ods = _final(work, "4 trees")["ods"]
    yield Number("SE of as many trees as CS-SE+DSNA, ODS", (ods,), lower=False, digits=2)


def figure_7(work: Work) -> Iterator[Claim]:
    """DSNA beside the average of the same patches."""
    average, weighed = (_validated(work, step, 8)["ods"] for step in ("patches equally", "patches by DSNA"))
    yield Statement("edges, DSNA has a larger ODS than the average of the same patches", weighed > average + SEEDS,
                    f"{weighed:.3f}, {average:.3f}, on every 8th image of val")  # fmt: skip


def figure_10(work: Work) -> Iterator[Claim]:
    """Cleaner maps with preserved structures, by the same trees: more precision at the same recall."""
    ours, plain = _final(work, "half by DSNA"), _final(work, "4 trees")
    for metric, claim in (("ap", "cleaner maps: a larger AP"), ("ods", "preserved structures: a larger ODS")):
        words = f"{ours[metric]:.3f}, {plain[metric]:.3f}"
        yield Statement(f"{claim} than SE's", ours[metric] > plain[metric] + SEEDS, words)


def _final(work: Work, step: str) -> Result:
    """Return the metrics of a step on all test images, trained on the other two parts."""
    return _metrics(work, step, "final", 1_000_000, 1, 99)


def _validated(work: Work, step: str, every: int) -> Result:
    """Return the metrics of a step on every n-th validation image."""
    return _metrics(work, step, "development", 100_000, every, 24)


def _metrics(
    work: Work, step: str, protocol: Literal["final", "development"], patches: int, every: int, levels: int
) -> Result:
    (grown, applied), images = STEPS[step], None
    if work.quick:
        patches, every, levels, images = 100, 200, 2, 3
        grown, applied = {**grown, "trees": 4}, {**applied, "votes": 4}
    grown = {"patches": patches, "seed": 0, **grown}
    place = work.shared("edges")

    def measure() -> Result:
        data = BSDS500(crop=PATCH, protocol=protocol)
        data.setup()
        file = place.folder / f"{name_of({**grown, 'protocol': protocol})}.safetensors"
        if not file.exists():
            # The fitted head is freed before another one loads the forest: with kept patches it takes gigabytes.
            _grow(data, grown, images, file)
        head = _built(data, **grown, **applied)
        head.load_state_dict(load_file(file))
        return _evaluate(head, {str(row): data.read(row) for row in data.split.test[::every]}, levels)

    return place.result({**grown, **applied, "protocol": protocol, "every": every, "levels": levels}, measure)


def _built(data: BSDS500, **options: Any) -> StructuredEdges:
    head = StructuredEdges(**options, threads=1)
    head.build(3, data.labels)
    return head


def _grow(data: BSDS500, grown: dict[str, Any], images: int | None, file: Path) -> None:
    """Fit a forest on the first training images, or on all, and write its state."""
    head = _built(data, **grown)
    read = (data.read(row) for row in data.split.train[:images])
    drawn = [(image, truth.boundaries, truth.segments) for image, truth in read if truth.segments is not None]
    head.fit_scenes([make_scene(*scene, head.floor) for scene in drawn], Collective())
    with replacing(file) as whole:
        whole.write(save(head.state_dict()))


def _evaluate(head: StructuredEdges, tested: dict[str, tuple[np.ndarray, GroundTruth]], levels: int) -> Result:
    """Return ODS, OIS and AP of maps with 8 bits."""

    def compared(name: str) -> tuple[np.ndarray, GroundTruth]:
        image, truth = tested[name]
        strength = head(torch.tensor(image).permute(2, 0, 1)[None])[0, ..., 1].numpy()
        return np.round(suppress(strength) * 255) / 255, truth

    found = evaluate(list(tested), compared, levels)
    by_name = scores(found.thresholds, found.counts)
    return {name: by_name[name] for name in METRICS}
