"""Edges of BSDS500: Table I, Table IV and Figures 7 and 10 of Huang, Loy & Tang 2016.

All is measured by ``benchmarks/edges/structured_steps.py``, whose store the items read: what lies there is not measured
again.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from benchmarks.common.claims import Claim, Number, Statement
from benchmarks.common.items import Work
from benchmarks.dsna.published import TABLE1_EDGE, TABLE4_DSNA, TABLE4_SE
from benchmarks.edges.structured_steps import FIGURES, STEPS, Step, cell_of
from ldl.cells.store import Row

PLAIN, DSNA = "as before: 8 trees, one scale", "they vote by DSNA"
FINAL_SE = "chosen with 8 trees"
FINAL_SAME = "chosen: 4 trees, which all vote, scales 1/2, 1, 3/2"
FINAL_DSNA = "chosen with DSNA for half of the votes"
EQUALLY = "10 patches of a leaf vote, equally"
SHARES = (EQUALLY, DSNA, "half by DSNA, half equally")
EIGHT, WEIGHTED = "and all 8 trees vote", "the same, 2 classes by k-means, of the same weight"
COSTS = (WEIGHTED, "the same, 4 classes by k-means", "the same, 4 classes of the same weight")
WAYS = ("the same, 16 trees, which all vote", "the same, mirror image too", "the same, sharpened by 3 pixels")


def _cell(work: Work, name: str, protocol: str, patches: int, every: int, levels: int) -> Row:
    step, store = STEPS[name], work.shared("edges")
    options = argparse.Namespace(
        path=None, protocol=protocol, patches=patches, every=every, levels=levels, out=store.folder, images=None
    )
    if work.quick:
        options.patches, options.every, options.levels, options.images = 100, 200, 2, 3
        step = Step(name, {**step.grown, "trees": 4}, {**step.applied, "votes": 4})
    return cell_of(store.cell, step, 0, options)


def final(work: Work, name: str) -> Row:
    """A step on all images of the test part, trained on the other two."""
    return _cell(work, name, "final", 1_000_000, 1, 99)


def validated(work: Work, name: str, every: int) -> Row:
    """A step on some images of the validation part."""
    return _cell(work, name, "development", 100_000, every, 24)


def edges(work: Work) -> Iterator[Claim]:
    """Table I, edges."""
    for name, step in (("RF", FINAL_SE), ("CS-RF+DSNA", FINAL_DSNA)):
        ods, peer = final(work, step)["ods"], name == "RF"
        yield Number(f"edges, {name}, ODS", (ods,), TABLE1_EDGE[name], lower=False, digits=2, peer=peer)
    plain, weighted = (validated(work, name, 4)["ods"] for name in (EIGHT, WEIGHTED))
    says = "edges, nodes that mind rare classes gain, on every 4th image of val"
    yield Statement(says, weighted > plain, f"ODS {weighted:.3f}, plain {plain:.3f}", "0.76, plain 0.75")
    yield from tried(work, "edges, ", 4, COSTS)


def table4(work: Work) -> Iterator[Claim]:
    """ODS, OIS and AP."""
    for name, step, published in (("SE", FINAL_SE, TABLE4_SE), ("CS-SE+DSNA", FINAL_DSNA, TABLE4_DSNA)):
        cell = final(work, step)
        for figure in FIGURES:
            words, peer = f"{name}, {figure.upper()}", name == "SE"
            yield Number(words, (cell[figure],), published[figure], lower=False, digits=2, peer=peer)
    yield Number("SE of as many trees as CS-SE+DSNA, ODS", (final(work, FINAL_SAME)["ods"],), lower=False, digits=2)
    yield from tried(work, "", 8, (PLAIN, *SHARES))
    yield from tried(work, "", 4, (EIGHT, *WAYS))


def tried(work: Work, prefix: str, every: int, names: Iterable[str]) -> Iterator[Claim]:
    """ODS of steps on some images of the validation part."""
    for name in list(names)[: 1 if work.quick else None]:
        ods = validated(work, name, every)["ods"]
        words = f"{prefix}{name}: ODS on every {every}th image of val"
        yield Number(words, (ods,), lower=False, digits=3, attempt=True)


def figure7(work: Work) -> Iterator[Claim]:
    """DSNA beside the average of the same patches."""
    average, weighed = validated(work, EQUALLY, 8)["ods"], validated(work, DSNA, 8)["ods"]
    yield Statement("edges, DSNA has a larger ODS than the average of the same patches", weighed > average,
                    f"{weighed:.3f}, {average:.3f}, on every 8th image of val")  # fmt: skip


def figure10(work: Work) -> Iterator[Claim]:
    """Cleaner maps with preserved structures, by the same trees: more precision at the same recall."""
    ours, plain = final(work, FINAL_DSNA), final(work, FINAL_SAME)
    for figure, says in (("ap", "cleaner maps: a larger AP"), ("ods", "preserved structures: a larger ODS")):
        yield Statement(f"{says} than SE's", ours[figure] > plain[figure], f"{ours[figure]:.3f}, {plain[figure]:.3f}")
