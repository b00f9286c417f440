"""Embeddings that MSLP is compared with, against other ways to compute them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from torch import Tensor

from benchmarks.mslp.attempts import of_components
from benchmarks.mslp.embeddings import MIXING, NEAR, cca, mslp, npe, pca, projected, whole
from ldl.collective import Collective
from ldl.heads import AAKNN, MSLP
from ldl.labels import LabelSpace


@pytest.fixture
def problem() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(60, 5, generator=generator) + 2
    return features, (features @ torch.randn(5, 4, generator=generator)).softmax(1)


def test_principal_components(problem: tuple[Tensor, Tensor]) -> None:
    features, target = problem
    ours = projected(pca)(features, target, 2).points.numpy()
    theirs = PCA(2).fit_transform(features.double().numpy())
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), atol=1e-6)


def test_canonical_directions(problem: tuple[Tensor, Tensor]) -> None:
    """Their correlations are the singular values between orthonormal bases of features and labels."""
    features, target = (part.double().numpy() - part.double().numpy().mean(0) for part in problem)
    wanted = np.linalg.svd(np.linalg.qr(features)[0].T @ np.linalg.qr(target[:, :3])[0], compute_uv=False)
    points = features @ cca(features, problem[1].double().numpy(), 3, 0.0)
    for point, correlation in zip(points.T, wanted):
        mixed = target @ np.linalg.lstsq(target, point, rcond=None)[0]
        assert np.corrcoef(point, mixed)[0, 1] == pytest.approx(correlation)


def test_mixtures_of_neighbours(problem: tuple[Tensor, Tensor]) -> None:
    rows = problem[0].double().numpy()
    rows = rows - rows.mean(0)
    missed = np.empty_like(rows)
    for i, row in enumerate(rows):
        near = [j for j in np.linalg.norm(rows - row, axis=1).argsort() if j != i][:NEAR]
        gram = (rows[near] - row) @ (rows[near] - row).T
        shares = np.linalg.solve(gram + MIXING * gram.trace() * np.eye(NEAR), np.ones(NEAR))
        missed[i] = row - shares @ rows[near] / shares.sum()
    found = npe(rows, problem[1].numpy(), 3, 0.0)
    left, right = missed.T @ missed, rows.T @ rows
    np.testing.assert_allclose(found.T @ right @ found, np.eye(3), atol=1e-8)
    costs = np.sort(np.linalg.eigvals(np.linalg.solve(right, left)).real)[:3]
    np.testing.assert_allclose(found.T @ left @ found, np.diag(costs), atol=1e-8)


def test_predictions_are_the_heads(problem: tuple[Tensor, Tensor]) -> None:
    """Of fewer dimensions and neighbours, too, from one fit."""
    features, target = problem
    found = mslp(features, target, 4, centred=False)
    for ratio, neighbours in ((0.5, 3), (1.0, 7)):
        head = MSLP(centred=False, ratio=ratio, neighbours=neighbours)
        head.build(5, LabelSpace.nominal(list("abcd")))
        head.fit(features, target, Collective())
        ours = found.predict(features, round(4 * ratio), (3, 7))[neighbours]
        torch.testing.assert_close(ours.float(), head(features))
    plain = AAKNN(neighbours=5)
    plain.build(5, LabelSpace.nominal(list("abcd")))
    plain.fit(features, target, Collective())
    torch.testing.assert_close(whole(features, target, 0).predict(features, None, (5,))[5].float(), plain(features))


def test_components_are_those_that_are_named(problem: tuple[Tensor, Tensor]) -> None:
    features, target = problem
    found = of_components(whole)(features, target, 0, first=1, most=3, white=True)
    theirs = PCA(4, whiten=True).fit_transform(features.double().numpy())[:, 1:] * np.sqrt(60 / 59)
    np.testing.assert_allclose(np.abs(found.embed(features).numpy()), np.abs(theirs), atol=1e-4)
    torch.testing.assert_close(found.points, found.embed(features))
