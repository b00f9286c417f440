"""Ways to come nearer to the published figures on SCUT_FBP, all chosen in the inner folds that choose settings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.claims import Claim, Number
from benchmarks.common.folds import inputs_of
from benchmarks.common.items import Work
from benchmarks.mslp.choice import Candidate, open_set
from benchmarks.mslp.embeddings import Embedded, Embedder, mslp, whole
from benchmarks.mslp.tables import PRINTED, measured, table, values

SET = "SCUT_FBP"


def of_components(embedder: Embedder) -> Embedder:
    """An embedder of principal components: from the number ``first`` on, at most ``most``, all of one spread if
    ``white``, else each of its own, of which the mean square is 1."""

    def embed(
        features: Tensor, target: Tensor, dimensions: int, /, first: int, most: int, white: bool, **options: Any
    ) -> Embedded:
        centre = features.double().mean(0)
        rows = features.double() - centre
        size, vectors = torch.linalg.svd(rows, full_matrices=False)[1:]
        kept = slice(first, first + most)
        scale = size[kept] if white else size[kept].square().mean().sqrt()
        basis = vectors[kept].T / scale * len(rows) ** 0.5

        def components(others: Tensor) -> Tensor:
            return ((others.double() - centre) @ basis).float()

        found = embedder(components(features), target, dimensions, **options)
        return replace(found, embed=lambda others: found.embed(components(others)))

    return embed


COMMUTE = {"metric": ("commute",), "sigma": (0.3,), "landmarks": (500,)}
LESS = {"ridge": (1e-3,)}
REST = {"first": (1,), "most": (300,), "white": (False,), "scaling": ("none",)}
"""Of the components all but the leading one."""
LEADING = {"first": (1,), "most": (20,), "white": (True,), "scaling": ("none",)}
WIDE = {"positives": (50,), "spread": (10.0,), "negatives": (0,)}
"""More neighbours, in labels and in features, and none that is pushed."""
WAYS = (
    replace(PRINTED, name="as printed, chosen by KL alone", grid={"centred": (False,)}, measures=("kl",)),
    replace(PRINTED, name="as printed, less ridge", grid={"centred": (False,), **LESS}),
    Candidate("commute, less ridge, more dimensions", mslp, {**COMMUTE, **LESS}, ratios=(1.0, 3.0, 10.0)),
    Candidate("AA-kNN, leading component left out", of_components(whole), REST, ratios=(None,)),
    Candidate("AA-kNN, components of one spread", of_components(whole), LEADING, ratios=(None,)),
    Candidate("components of one spread", of_components(mslp), {**LEADING, "kernel": ("rbf",)}),
    Candidate("as printed, leading component left out", of_components(mslp), {**REST, **WIDE, "centred": (False,)}),
    Candidate(
        "leading component left out, more neighbours",
        of_components(mslp),
        {**REST, **WIDE, **COMMUTE},
        ratios=(1.0, 3.0),
    ),
)


def scut_fbp(work: Work) -> Iterator[Claim]:
    """Table 2's half, and what was tried."""
    claims = list(table(work, SET))
    yield from claims
    rows = inputs_of(open_set(SET, "standard", 0)).double()
    variance = torch.linalg.svdvals(rows - rows.mean(0)).square()
    yield Number("share of the features' variance in one component", (float(variance[0] / variance.sum()),))
    printed = {claim.name: claim.published for claim in claims if isinstance(claim, Number)}
    for way in WAYS[-1:] if work.quick else WAYS:
        rows = measured(work, SET, way)
        method = "AA-kNN" if way.name.startswith("AA-kNN") else "MSLP"
        yield Number(f"{way.name}, kl", values(rows, "kl"), printed[f"{method}, kl"], attempt=True)
