"""LDLF: forward and loss against loops, the ring of samples, the options."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from small_forests import LABELS, batch, learn, made, tree_outputs

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.heads import LDLF
from ldl.methods.forest.soft import route, update_leaves
from ldl.metrics.functional import kl


def test_forward_and_loss_equal_a_loop_over_trees() -> None:
    head = made()
    features, target = batch()
    outputs = tree_outputs(head, features)
    torch.testing.assert_close(head(features), sum(outputs) / 3)
    mean_of_losses = sum(kl(output, target).mean() for output in outputs) / 3
    loss_of_mean = kl(sum(outputs) / 3, target).mean()  # type: ignore[arg-type]
    torch.testing.assert_close(head.loss(features, target)["loss"], mean_of_losses)
    assert mean_of_losses > loss_of_mean + 1e-3


def test_the_paper_s_sizes_by_default() -> None:
    head = LDLF()
    head.build(8, LABELS)
    assert head.leaves.shape == (5, 64, 6)
    assert bool((head.leaves == 1 / 6).all())
    assert head.split[-1].out_features == 64
    assert (head.iterations, head.batches, head.routing, head.ensemble) == (20, 100, "step", "joint")
    assert head.objective == "trees"


@pytest.mark.parametrize("outputs", [31, 40])
def test_units_are_drawn_without_replacement(outputs: int) -> None:
    torch.manual_seed(0)
    head = LDLF(trees=8, depth=6, outputs=outputs)
    head.build(4, LABELS)
    assert head.units.shape == (8, 31)
    assert all(len(set(units)) == 31 for units in head.units.tolist())
    assert int(head.units.min()) >= 0 and int(head.units.max()) < outputs
    assert len({tuple(units) for units in head.units.tolist()}) == 8


def test_units_of_their_own_are_not_shared() -> None:
    head = made(outputs=None)
    assert sorted(head.units.flatten().tolist()) == list(range(9))
    assert head.split[-1].out_features == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 7, "outputs": 62}, "LDLF.outputs 62 must be at least 63, the split nodes.*depth 7, or null"),
        ({"ensemble": "alternating"}, "set outputs: null"),
        ({"ensemble": "both"}, "LDLF.ensemble 'both' must be one of joint, alternating"),
        ({"routing": "now"}, "LDLF.routing 'now' must be one of step, current"),
        ({"depth": 1}, "depth 1 must be in 2..16"),
        ({"trees": 0}, "trees 0 must be in 1..10000"),
        ({"batches": 0}, "batches 0 must be in 1..100000"),
        ({"iterations": 0}, "iterations 0 must be at least 1"),
        ({"tree_dropout": 1.0}, "tree_dropout"),
        ({"objective": "leaves"}, "LDLF.objective 'leaves' must be one of trees, forest"),
        ({"objective": "forest", "tree_dropout": 0.5}, "fits all trees together; set ensemble: joint and tree_dropout"),
        ({"objective": "forest", "ensemble": "alternating", "outputs": None}, "fits all trees together"),
        ({"tree_dropout": 0.5, "ensemble": "alternating", "outputs": None}, "one tree a batch; set tree_dropout: 0"),
        ({"buffer_rows": 3}, "buffer_rows 3 must be at least batches, 4"),
        ({"dropout": -0.1}, "dropout"),
        ({"leaf_smoothing": -1.0}, "leaf_smoothing"),
        ({"leaf_floor": 0.5}, "leaf_floor"),
        ({"anneal": 0.0}, "anneal"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message) as caught:
        made(**options)
    assert "\n" not in str(caught.value)


def test_alternating_trains_the_units_of_one_tree_a_batch() -> None:
    head = made(outputs=None, ensemble="alternating")
    features, target = batch()
    trained = []
    for _ in range(30):
        head.zero_grad()
        loss = head.loss(features, target)["loss"]
        loss.backward()
        moved = head.split[-1].weight.grad.abs().sum(1) > 0
        trees = [k for k, units in enumerate(head.units) if bool(moved[units].any())]
        assert len(trees) == 1
        assert bool(moved[head.units[trees[0]]].all())
        torch.testing.assert_close(loss, kl(tree_outputs(head, features)[trees[0]], target).mean())
        trained += trees
    assert set(trained) == {0, 1, 2}
    head.eval()
    torch.testing.assert_close(
        head.loss(features, target)["loss"], sum(kl(o, target).mean() for o in tree_outputs(head, features)) / 3
    )


def test_a_resumed_head_goes_on_with_the_trees_that_are_next() -> None:
    """They depend on the number of the step alone, and so are the same in every process."""
    head, copy = (made(outputs=None, ensemble="alternating") for _ in range(2))
    features, target = batch()
    for _ in range(5):
        head.loss(features, target)
    copy.load_state_dict(head.state_dict())
    losses = []
    for seed, each in enumerate((head, copy)):
        torch.manual_seed(seed)
        losses.append([float(each.loss(features, target)["loss"].detach()) for _ in range(8)])
    assert losses[0] == losses[1]


def test_tree_dropout_leaves_trees_out_of_single_samples() -> None:
    head = made(tree_dropout=0.5)
    features, target = batch(200)
    each = torch.stack([kl(output, target) for output in tree_outputs(head, features)], -1)
    torch.manual_seed(3)
    loss = head.loss(features, target)["loss"]
    torch.manual_seed(3)
    kept = torch.rand_like(each) >= 0.5
    assert 0.4 < kept.float().mean() < 0.6
    torch.testing.assert_close(loss, each[kept].mean())
    head.eval()
    torch.testing.assert_close(head.loss(features, target)["loss"], each.mean())


def test_annealing_sharpens_the_decisions() -> None:
    head = made(anneal=5.0, anneal_steps=4)
    features, target = batch()
    nodes = head.split(features)[..., head.units]
    factors = []
    for steps in range(6):
        assert int(head.steps) == steps
        factor = 1 + 4 * min(steps, 4) / 4
        torch.testing.assert_close(head.route(features), route(torch.sigmoid(factor * nodes)))
        factors.append(factor)
        head.loss(features, target)
    assert factors[-1] == 5
    head.eval()
    head.loss(features, target)
    assert int(head.steps) == 6


def test_the_ring_holds_the_last_batches_with_the_routing_of_their_step() -> None:
    head = made()
    parts = []
    for seed in range(6):
        features, target = batch(3 + seed, seed)
        parts.append((head.route(features).detach(), target))
        learn(head, features, target)
        with torch.no_grad():
            head.split[-1].weight.add_(0.1)  # a gradient step changes the routing of later batches
    routing, target = (torch.cat(column) for column in zip(*parts[-4:]))
    expected = update_leaves(routing, target, head.leaves, 20, floor=1e-8)
    head.update(Collective())
    torch.testing.assert_close(head.leaves, expected)


@pytest.mark.parametrize("shape", [(7,), (2, 3, 4)])
def test_samples_come_last_in_memory(shape: tuple[int, ...]) -> None:
    """Nothing that is computed of the routing copies it, which is what makes it fast."""
    head = made()
    features, target = batch(shape=shape)
    routing = head.loss(features, target)["memory"]
    rows = routing.flatten(0, -3)
    assert rows.data_ptr() == routing.data_ptr() and rows.permute(2, 1, 0).is_contiguous()
    head.observe(routing, target)
    ((kept, _),) = head._ring
    assert kept.permute(2, 1, 0).is_contiguous() and torch.equal(kept, rows)
    torch.testing.assert_close(routing, head.route(features.flatten(0, -2)).reshape(routing.shape))


def test_current_routing_uses_the_split_function_of_the_update() -> None:
    head = made(routing="current", hidden=[16], dropout=0.5)
    parts = [batch(5, seed) for seed in range(4)]
    for features, target in parts:
        learn(head, features, target)
        with torch.no_grad():
            head.split[-1].weight.add_(0.1)
    features, target = (torch.cat(column) for column in zip(*parts))
    head.eval()
    expected = update_leaves(head.route(features).detach(), target, head.leaves, 20, floor=1e-8)
    head.train()
    head.update(Collective())
    assert head.training and head.split.training
    torch.testing.assert_close(head.leaves, expected)


def test_the_observed_routing_is_that_of_the_loss_also_with_dropout() -> None:
    head = made(feature_dropout=0.5)
    features, target = batch()
    torch.manual_seed(1)
    learn(head, features, target)
    torch.manual_seed(1)
    torch.testing.assert_close(head._ring[0][0], head.route(features))


@pytest.mark.parametrize("routing", ["step", "current"])
def test_the_ring_is_bounded_in_rows(routing: str) -> None:
    head = made(buffer_rows=18, routing=routing)
    for seed in range(9):
        features, target = batch(seed=seed, shape=(2, 5, 7))
        learn(head, features, target)
        rows = [len(kept) for kept, _ in head._ring]
        assert sum(rows) <= 18 and max(rows) <= 18 // 4
    assert len(head._ring) == 4
    for kept, target in head._ring:
        assert len(kept) == len(target) == 4
        assert kept.untyped_storage().nbytes() == kept.nbytes  # no view that keeps the whole batch alive


def test_the_rows_of_a_bounded_ring_belong_together() -> None:
    head = made(buffer_rows=16, routing="current")
    features, target = batch(50)
    head.observe(features, target)
    kept, kept_target = head._ring[0]
    rows = [int((features == row).all(-1).nonzero()) for row in kept]
    assert len(set(rows)) == 4 and rows != [0, 1, 2, 3]
    assert torch.equal(kept_target, target[rows])


def test_the_ring_owns_its_rows() -> None:
    head = made(routing="current")
    features, target = batch()
    head.observe(features, target)
    expected = features.clone(), target.clone()
    features.zero_()
    target.zero_()
    assert all(torch.equal(kept, copy) for kept, copy in zip(head._ring[0], expected))


def test_an_update_is_due_every_n_batches() -> None:
    head = made()
    due = []
    for seed in range(12):
        features, target = batch(4, seed)
        rows = 0 if seed == 1 else 4
        head.observe(head.loss(features, target)["memory"][:rows], target[:rows])
        due.append(head.update_due)
        if head.update_due:
            head.update(Collective())
    assert due == [False, False, False, True] * 3


def test_memory_survives_a_round_trip() -> None:
    head, copy = made(), made()
    for seed in range(6):
        features, target = batch(3 + seed, seed)
        learn(head, features, target)
        if head.update_due:
            head.update(Collective())
    copy.load_state_dict(head.state_dict())
    memory = head.memory_state(Collective())
    # Two batches came since the last update; the two older ones in the ring will be gone at the next.
    assert memory["rows"].tolist() == [7, 8] and len(memory["kept"]) == len(memory["target"]) == 15
    copy.load_memory_state(memory, Collective())
    for seed in (6, 7):
        for each in (head, copy):
            learn(each, *batch(4, seed))
    assert head.update_due and copy.update_due
    for each in (head, copy):
        each.update(Collective())
    assert torch.equal(head.leaves, copy.leaves)
    fresh = made()
    fresh.load_memory_state(made().memory_state(Collective()), Collective())
    assert len(fresh._ring) == 0 and not fresh.update_due


def test_autocast_gives_float32_on_the_simplex() -> None:
    head = made()
    features, target = batch()
    with torch.autocast("cpu", torch.bfloat16):
        prediction, losses = head(features), head.loss(features, target)
        head.observe(losses["memory"], target)
    assert prediction.dtype == losses["loss"].dtype == head._ring[0][0].dtype == torch.float32
    torch.testing.assert_close(prediction.sum(-1), torch.ones(10))
    torch.testing.assert_close(prediction, head(features), atol=0.02, rtol=0)


@pytest.mark.parametrize("shape", [(), (1,), (0,), (7,), (2, 3, 4)])
def test_leading_dimensions(shape: tuple[int, ...]) -> None:
    head = made()
    features, target = batch(shape=shape)
    prediction = head(features)
    assert prediction.shape == (*shape, 6)
    torch.testing.assert_close(prediction.reshape(-1, 6), head(features.reshape(-1, 8)))
    if features.numel():
        flat = head.loss(features.reshape(-1, 8), target.reshape(-1, 6))["loss"]
        torch.testing.assert_close(head.loss(features, target)["loss"], flat)
