"""Routing and leaf updates against references written as plain loops."""

from __future__ import annotations

import pytest
import torch
from fakes.process_pairs import in_two_threads
from torch import Tensor

from ldl.collective import Collective
from ldl.methods.forest.soft import mix, route, update_leaves


def route_by_paths(decisions: Tensor) -> Tensor:
    """Eq. 1 for one sample: (L - 1,) to (L,), walking from every leaf up to the root."""
    nodes = len(decisions)
    reach = []
    for leaf in range(nodes + 1):
        probability, node = 1.0, nodes + leaf
        while node:
            parent = (node - 1) // 2
            left = float(decisions[parent])
            probability *= left if node == 2 * parent + 1 else 1 - left
            node = parent
        reach.append(probability)
    return torch.tensor(reach, dtype=torch.float64)


def update_by_loops(routing: Tensor, target: Tensor, leaves: Tensor, iterations: int) -> Tensor:
    """Eq. 12 for one tree in float64, term by term."""
    p, d, q = routing.double().tolist(), target.double().tolist(), leaves.double().tolist()
    samples, labels, count = range(len(p)), range(len(d[0])), range(len(q))
    for _ in range(iterations):
        g = [[sum(p[i][leaf] * q[leaf][c] for leaf in count) for c in labels] for i in samples]
        rows = []
        for leaf in count:
            row = [q[leaf][c] * sum(d[i][c] * p[i][leaf] / g[i][c] for i in samples if d[i][c] > 0) for c in labels]
            rows.append([entry / sum(row) for entry in row] if sum(row) > 0 else q[leaf])
        q = rows
    return torch.tensor(q, dtype=torch.float64)


def problem(
    seed: int, *, samples: int, trees: int, depth: int, labels: int, sharpness: float, peak: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Random routing (N, K, L), targets (N, C) and leaves (K, L, C) in float64; a high ``peak`` is one-hot."""
    generator = torch.Generator().manual_seed(seed)
    leaves = 2 ** (depth - 1)
    scores = torch.randn(samples, trees, leaves - 1, generator=generator, dtype=torch.float64)
    target = torch.softmax(peak * torch.randn(samples, labels, generator=generator, dtype=torch.float64), -1)
    # True zeros in place of vanishing mass, whose logarithms would only test underflow.
    target = torch.where(target > 1e-9, target, 0.0)
    target = target / target.sum(-1, keepdim=True)
    start = torch.softmax(torch.randn(trees, leaves, labels, generator=generator, dtype=torch.float64), -1)
    return route(torch.sigmoid(sharpness * scores)), target, start


def cross_entropy(routing: Tensor, target: Tensor, leaves: Tensor) -> Tensor:
    """R of each tree (K,)."""
    return -torch.xlogy(target.unsqueeze(1), mix(routing, leaves)).sum(-1).mean(0)


@pytest.mark.parametrize("depth", [2, 5])
def test_route_follows_heap_paths(depth: int) -> None:
    decisions = torch.rand(4, 2 ** (depth - 1) - 1, dtype=torch.float64)
    expected = torch.stack([route_by_paths(row) for row in decisions])
    torch.testing.assert_close(route(decisions), expected, rtol=1e-12, atol=1e-15)


def test_route_of_hard_decisions_reaches_one_leaf() -> None:
    # Right at the root, left below: the third of four leaves.
    assert route(torch.tensor([0.0, 0.3, 1.0])).tolist() == [0.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (0, 3)])
def test_route_acts_on_the_last_dimension(shape: tuple[int, ...]) -> None:
    decisions = torch.rand(*shape, 15)
    routing = route(decisions)
    assert routing.shape == (*shape, 16)
    torch.testing.assert_close(routing.sum(-1), torch.ones(shape))
    torch.testing.assert_close(routing.reshape(-1, 16), route(decisions.reshape(-1, 15)))


def test_gradients_of_route_and_mix() -> None:
    decisions = torch.rand(3, 2, 7, dtype=torch.float64).mul(0.9).add(0.05).requires_grad_()
    leaves = torch.rand(2, 8, 3, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(route, (decisions,))
    assert torch.autograd.gradcheck(lambda d, q: mix(route(d), q), (decisions, leaves))


@pytest.mark.parametrize(("iterations", "sharpness", "peak"), [(1, 0.3, 0.5), (20, 8.0, 1.0), (20, 2.0, 30.0)])
def test_update_equals_the_loops(iterations: int, sharpness: float, peak: float) -> None:
    routing, target, leaves = problem(1, samples=20, trees=2, depth=4, labels=5, sharpness=sharpness, peak=peak)
    routing, target, leaves = routing.float(), target.float(), leaves.float()
    updated = update_leaves(routing, target, leaves, iterations)
    assert updated.dtype == torch.float32
    for tree in range(2):
        expected = update_by_loops(routing[:, tree], target, leaves[tree], iterations)
        # Entries that shrink at every iteration end as 0; below 1e-20 they are some 12 orders under what float32
        # resolves next to the row's sum of 1.
        kept = expected > 1e-20
        error = (updated[tree].double() - expected).abs()
        assert float((error / expected)[kept].max()) <= 1e-5
        assert bool((updated[tree].double()[~kept] <= 2e-20).all())


def test_leaves_hold_nothing_that_is_slow() -> None:
    """Numbers near the smallest normal one, which narrow targets far from a leaf's own become: they are 0 instead."""
    generator = torch.Generator().manual_seed(0)
    routing = torch.softmax(3 * torch.randn(200, 2, 16, generator=generator), -1)
    peaks = 60 * torch.rand(200, 1, generator=generator)
    target = torch.softmax(-((torch.arange(60) - peaks) ** 2), -1)
    leaves = update_leaves(routing, target, torch.full((2, 16, 60), 1 / 60))
    assert bool((leaves == 0).any())
    assert float(leaves[leaves > 0].min()) > 1e-26
    torch.testing.assert_close(leaves.sum(-1), torch.ones(2, 16))


def test_no_iteration_raises_the_cross_entropy() -> None:
    pick = torch.Generator().manual_seed(0)
    seen_sharp = seen_flat = 0
    for seed in range(20):
        ranges = ((2, 101), (2, 9), (1, 60), (1, 4))
        labels, depth, samples, trees = (int(torch.randint(*range_, (), generator=pick)) for range_ in ranges)
        sharpness = float(10 ** torch.empty(()).uniform_(-2, 2, generator=pick))
        peak = float(10 ** torch.empty(()).uniform_(-2, 2, generator=pick))
        seen_sharp, seen_flat = seen_sharp + (sharpness > 20), seen_flat + (sharpness < 0.1)
        routing, target, leaves = problem(
            seed, samples=samples, trees=trees, depth=depth, labels=labels, sharpness=sharpness, peak=peak
        )
        before = cross_entropy(routing, target, leaves)
        for _ in range(8):
            leaves = update_leaves(routing, target, leaves, iterations=1)
            after = cross_entropy(routing, target, leaves)
            # Rounding alone may raise it once the leaves are solved.
            assert bool((after <= before + 1e-12 * (1 + before)).all()), (seed, before, after)
            assert bool((leaves >= 0).all())
            torch.testing.assert_close(leaves.sum(-1), torch.ones(leaves.shape[:2], dtype=torch.float64))
            before = after
    assert seen_sharp and seen_flat


def test_a_leaf_without_mass_keeps_its_row() -> None:
    routing = torch.tensor([[[0.4, 0.6, 0.0]], [[1.0, 0.0, 0.0]]])
    target = torch.tensor([[0.5, 0.5], [0.9, 0.1]])
    leaves = torch.tensor([[[0.5, 0.5], [0.2, 0.8], [0.3, 0.7]]])
    updated = update_leaves(routing, target, leaves)
    assert torch.equal(updated[0, 2], leaves[0, 2])
    assert not torch.equal(updated[0, :2], leaves[0, :2])


@pytest.mark.parametrize("smoothing", [0.0, 2.0])
def test_an_empty_batch_keeps_all_leaves(smoothing: float) -> None:
    _, _, leaves = problem(3, samples=1, trees=2, depth=3, labels=4, sharpness=1, peak=1)
    updated = update_leaves(torch.zeros(0, 2, 4), torch.zeros(0, 4), leaves, smoothing=smoothing)
    assert torch.equal(updated, leaves)


def test_low_precision_inputs_are_computed_in_float32() -> None:
    routing, target, leaves = problem(4, samples=50, trees=2, depth=4, labels=6, sharpness=1, peak=1)
    low = [argument.bfloat16() for argument in (routing, target, leaves)]
    exact = update_leaves(*(argument.float() for argument in low))
    assert torch.equal(update_leaves(*low), exact)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(update_leaves(*low), exact)
        assert torch.equal(update_leaves(*(argument.float() for argument in low)), exact)


def test_smoothing_adds_samples_with_the_mean_target() -> None:
    # One leaf holds everything: it becomes (sum of targets + smoothing * mean) / (N + smoothing), the mean itself;
    # a leaf without samples becomes the mean too; a leaf with one sample lies between the two, 1 : smoothing.
    routing = torch.tensor([[[1.0, 0, 0]], [[1.0, 0, 0]], [[0, 1.0, 0]]], dtype=torch.float64)
    target = torch.tensor([[1.0, 0], [0.5, 0.5], [0, 1.0]], dtype=torch.float64)
    leaves = torch.full((1, 3, 2), 0.5, dtype=torch.float64)
    updated = update_leaves(routing, target, leaves, smoothing=3.0)[0]
    mean = target.mean(0)
    torch.testing.assert_close(updated[0], (target[:2].sum(0) + 3 * mean) / 5)
    torch.testing.assert_close(updated[1], (target[2] + 3 * mean) / 4)
    torch.testing.assert_close(updated[2], mean)


def test_floor_brings_back_an_absent_label() -> None:
    routing, target, leaves = problem(5, samples=30, trees=1, depth=3, labels=3, sharpness=1, peak=1)
    target[:, 2] = 0
    target = target / target.sum(-1, keepdim=True)
    later = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64).expand(30, 3)
    lost = update_leaves(routing, target, leaves)
    assert bool((lost[..., 2] == 0).all())
    assert bool((update_leaves(routing, later, lost)[..., 2] == 0).all())
    kept = update_leaves(routing, target, leaves, floor=1e-8)
    assert float(kept.min()) >= 1e-8 * (1 - 1e-6)
    torch.testing.assert_close(kept.sum(-1), torch.ones(1, 4, dtype=torch.float64))
    torch.testing.assert_close(update_leaves(routing, later, kept)[..., 2], torch.ones(1, 4, dtype=torch.float64))


@pytest.mark.parametrize(("cut", "smoothing"), [(0, 2.0), (1, 0.0), (13, 2.0)])
def test_two_ranks_equal_one(cut: int, smoothing: float) -> None:
    routing, target, leaves = problem(6, samples=20, trees=2, depth=4, labels=5, sharpness=3, peak=2)
    rows = slice(cut), slice(cut, None)

    def work(each: Collective) -> Tensor:
        return update_leaves(routing[rows[each.rank]], target[rows[each.rank]], leaves, 20, each, smoothing, 1e-8)

    results = in_two_threads(work)
    assert torch.equal(results[0], results[1])
    torch.testing.assert_close(results[0], update_leaves(routing, target, leaves, 20, None, smoothing, 1e-8))
