"""MSLP against a dense float64 reference written from the talk, and its rules at the edges."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import eigh

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import AAKNN, MSLP
from ldl.labels import LabelSpace
from ldl.methods import embedding as locality
from ldl.methods.embedding import neighbour_graphs, preserve, rbf, varying_directions
from ldl.methods.rows import Rows
from ldl.testing import check_head

LABELS = LabelSpace.nominal(list("abcd"))


def _problem(seed: int, rows: int = 70, width: int = 6) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, width))
    scores = np.tanh(features @ rng.normal(size=(width, 4))) * 2 + 0.3 * rng.normal(size=(rows, 4))
    target = np.exp(scores)
    return features, target / target.sum(1, keepdims=True)


def _dense_graphs(
    features: np.ndarray, target: np.ndarray, positives: int, spread: float, negatives: int, sigma: float
) -> tuple[np.ndarray, np.ndarray]:
    """The definitions, pair by pair."""
    size = len(features)
    by_feature = np.linalg.norm(features[:, None] - features, axis=2)
    by_label = np.linalg.norm(target[:, None] - target, axis=2)
    drawn, pushed = np.zeros((size, size), bool), np.zeros((size, size), bool)
    for i in range(size):
        near = [j for j in np.argsort(by_feature[i]) if j != i][: round(spread * positives)]
        by_closeness = sorted(near, key=lambda j: by_label[i, j])
        drawn[i, by_closeness[:positives]] = True
        pushed[i, list(set(near[:negatives]) & set(by_closeness[len(near) - negatives :]))] = True
    scale = sigma * by_label[drawn].mean()
    drawn, pushed = drawn | drawn.T, pushed | pushed.T
    return np.where(drawn, np.exp(-by_label / scale), 0), pushed.astype(float)


@pytest.mark.parametrize("seed", range(2))
def test_graphs_are_those_of_the_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locality, "DISTANCES_AT_ONCE", 1000)
    features, target = _problem(seed)
    arguments = (5 + seed, 1.0 + seed / 2, 4, 0.7)
    graphs = neighbour_graphs(torch.tensor(features), torch.tensor(target), *arguments)
    for graph, expected in zip(graphs, _dense_graphs(features, target, *arguments)):
        np.testing.assert_allclose(graph.toarray(), expected, atol=1e-12)


@pytest.mark.parametrize("beta", [0.0, 0.6, 1.0])
def test_projection_solves_the_eigenproblem(beta: float) -> None:
    features, target = _problem(1)
    features -= features.mean(0)
    drawn, pushed = _dense_graphs(features, target, 6, 3.0, 5, 1.0)
    degrees, push_degrees = np.diag(drawn.sum(1)), np.diag(pushed.sum(1))
    right = features.T @ degrees @ features
    left = features.T @ (beta * (degrees - drawn) - (1 - beta) * (push_degrees - pushed)) @ features
    left += 0.2 * right.trace() / len(right) * np.eye(len(right))
    values, vectors = eigh(left, right)
    graphs = neighbour_graphs(torch.tensor(features), torch.tensor(target), 6, 3.0, 5, 1.0)
    ours, cost = preserve(features, *graphs, beta, 0.2, 3)
    alone = features.T @ (degrees - drawn) @ features + 0.2 * right.trace() / len(right) * np.eye(len(right))
    np.testing.assert_allclose(cost, np.diag(ours.T @ alone @ ours), atol=1e-8)
    if beta == 1:
        np.testing.assert_allclose(cost, values[:3], atol=1e-8)
    np.testing.assert_allclose(ours.T @ right @ ours, np.eye(3), atol=1e-8)
    np.testing.assert_allclose(ours.T @ left @ ours, np.diag(values[:3]), atol=1e-8)
    np.testing.assert_allclose(np.abs((ours.T @ right @ vectors[:, :3]).diagonal()), 1, atol=1e-6)


@pytest.mark.parametrize("shape", [(40, 6), (8, 30)])
def test_directions_without_variance_are_left_out(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1]))
    features -= features.mean(0)
    basis = varying_directions(features)
    assert basis.shape == (shape[1], 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-10)
    np.testing.assert_allclose(features @ basis @ basis.T, features, atol=1e-10)


def _fitted(features: np.ndarray, target: np.ndarray, **options: object) -> MSLP:
    head = MSLP(**options)  # type: ignore[arg-type]
    head.build(features.shape[1], LABELS)
    head.fit(Rows(torch.tensor(features), torch.tensor(target)), Collective())
    return head


@pytest.mark.parametrize("options", [{}, {"kernel": "rbf", "landmarks": 10, "metric": "commute", "centred": False}])
def test_contract(options: dict[str, object]) -> None:
    check_head(lambda: MSLP(**options))  # type: ignore[arg-type]


def test_no_unit_of_the_features_matters() -> None:
    features, target = _problem(0)
    queries = torch.tensor(_problem(1)[0])
    expected = _fitted(features, target)(queries)
    torch.testing.assert_close(_fitted(1000 * features + 5, target)(1000 * queries + 5), expected)


def test_no_offset_matters_to_the_kernel() -> None:
    """The offset and the features, in 64ths, add up without rounding."""
    features, target = _problem(0)
    features = np.round(64 * features) / 64
    rows = torch.tensor(features).float()
    head, moved = (_fitted(features + offset, target, kernel="rbf") for offset in (0, 4096))
    torch.testing.assert_close(moved(rows + 4096), head(rows), atol=0.01, rtol=0)
    similarity = head._similarity(rows)
    torch.testing.assert_close(moved._similarity(rows + 4096), similarity)
    torch.testing.assert_close(rbf(rows + 4096, moved.landmark, moved.width), similarity)


def test_all_landmarks_are_the_kernel_form() -> None:
    """The embedding of the training rows is K A, with A the eigenvectors of the kernelised problem."""
    features, target = _problem(2, rows=40, width=3)
    head = _fitted(features, target, kernel="rbf", gamma=0.3, landmarks=1000, ratio=0.5, ridge=0.5)
    similarity = np.exp(-0.3 * np.square(features[:, None] - features).sum(2))
    mapped = head._map(torch.tensor(features).float()).numpy()
    np.testing.assert_allclose(mapped @ mapped.T, similarity, atol=2e-3)
    assert head.points.shape == (40, 2)


def test_commute_metric_divides_each_dimension_by_the_root_of_its_cost() -> None:
    features, target = _problem(3)
    centred = features - features.mean(0)
    graphs = neighbour_graphs(torch.tensor(features).float(), torch.tensor(target).float(), 20, 2.0, 10, 1.0)
    projection, cost = preserve(centred, *graphs, 0.8, 0.1, 4)
    expected = projection / np.sqrt(cost)
    ours = _fitted(features, target, metric="commute").projection.double().numpy()
    ratio = ours / expected
    ratio *= np.sign(ratio[0])  # an eigenvector's sign is free, and differs between numbers of threads
    np.testing.assert_allclose(ratio / ratio.mean(), 1, rtol=1e-3)


@pytest.mark.parametrize("centred", [True, False])
def test_the_constraint_is_of_features_as_they_are_or_centred(centred: bool) -> None:
    features, target = _problem(4)
    features += 3
    rows = features - centred * features.mean(0)
    drawn = _dense_graphs(features, target, 20, 2.0, 10, 1.0)[0]
    projection = _fitted(features, target, centred=centred).projection.double().numpy()
    bound = projection.T @ rows.T @ np.diag(drawn.sum(1)) @ rows @ projection
    np.testing.assert_allclose(bound / bound[0, 0], np.eye(4), atol=1e-4)


def test_a_dimension_without_cost_has_no_commute_time() -> None:
    """Two groups far apart, no pair drawn between them: what tells them apart costs nothing."""
    features, target = _problem(0, rows=40)
    features = np.repeat([[0.0], [1.0]], 20, 0) * np.ones(6)
    with pytest.raises(LDLError, match="'commute' divides by the cost of each dimension.*give a ridge above 0.0"):
        _fitted(features, target, metric="commute", ridge=0.0, positives=5)


def test_labels_help_where_most_features_are_noise() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 20))
    scores = np.stack([2 * features[:, 0], 2 * features[:, 1], -2 * features[:, 0], -2 * features[:, 1]], 1)
    target = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    head = _fitted(features[:300], target[:300])
    plain = AAKNN(10)
    plain.build(20, LABELS)
    plain.fit(Rows(torch.tensor(features[:300]), torch.tensor(target[:300])), Collective())
    errors = [(h(torch.tensor(features[300:])) - torch.tensor(target[300:])).abs().mean() for h in (head, plain)]
    assert errors[0] < 0.5 * errors[1]


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_few_rows(rows: int, centred: bool) -> None:
    features, target = _problem(0, rows)
    output = _fitted(features, target, centred=centred)(torch.randn(5, 6))
    torch.testing.assert_close(output, torch.tensor(target.mean(0)).float().expand(5, 4), atol=1e-6, rtol=0)


@pytest.mark.parametrize("centred", [True, False])
def test_constant_features_give_the_mean(centred: bool) -> None:
    target = _problem(0)[1]
    output = _fitted(np.ones((70, 6)), target, centred=centred)(torch.randn(5, 6))
    torch.testing.assert_close(output, torch.tensor(target.mean(0)).float().expand(5, 4), atol=1e-6, rtol=0)


def test_rows_that_no_near_pair_holds_add_no_direction() -> None:
    """Of two classes with one row each: their labels lie far from all others', whose distances are mostly 0."""
    features = torch.randn(60, 80, generator=torch.Generator().manual_seed(0))
    classes = torch.zeros(60, dtype=torch.long)
    classes[0], classes[1] = 1, 2
    head = MSLP(sigma=0.01)
    head.build(80, LABELS)
    head.fit(Rows(features, torch.eye(4)[classes]), Collective())
    assert head.projection.isfinite().all() and head(features).sum(1).allclose(torch.ones(60))


@pytest.mark.parametrize(("unit", "gamma"), [(1.0, 1e40), (1e20, None)])
def test_a_kernel_that_float32_does_not_hold_is_refused(unit: float, gamma: float | None) -> None:
    features, target = (torch.tensor(part, dtype=torch.float32) for part in _problem(0))
    head = MSLP(kernel="rbf", gamma=gamma)
    head.build(6, LABELS)
    with pytest.raises(LDLError, match=r"MSLP.gamma .*e[+-]\d+ is not in 1.2e-38..8.5e\+37, beyond which float32"):
        head.fit(Rows(features * unit, target), Collective())
