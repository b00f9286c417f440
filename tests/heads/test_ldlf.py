"""Label distribution learning forests: routing, leaf updates, objectives and learning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from checkpoints.make import Problem, sgd, train
from fakes.soft_forests import LABELS, batch, learn, made, tree_outputs
from torch import Tensor

from ldl.collective import Collective
from ldl.data import RotatedDigits, TabularLDL
from ldl.errors import LDLError
from ldl.heads import LDLF, MeanPredictor
from ldl.methods.forest.soft import route, update_leaves
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl
from ldl.task import Task
from ldl.testing import check_head


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
    assert (head.iterations, head.batches, head.routing, head.ensemble) == (20, None, "step", "joint")
    assert head.objective == "trees"


def test_units_are_drawn_without_replacement_or_are_each_node_s_own() -> None:
    torch.manual_seed(0)
    head = LDLF(trees=8, depth=6, outputs=40)
    head.build(4, LABELS)
    assert head.units.shape == (8, 31)
    assert all(len(set(units)) == 31 for units in head.units.tolist())
    assert int(head.units.min()) >= 0 and int(head.units.max()) < 40
    assert len({tuple(units) for units in head.units.tolist()}) == 8
    own = made(outputs=None)
    assert sorted(own.units.flatten().tolist()) == list(range(9)) and own.split[-1].out_features == 9


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": 7, "outputs": 62}, "LDLF.outputs 62 must be at least 63, the split nodes.*depth 7, or null"),
        ({"ensemble": "alternating"}, "set outputs: null"),
        ({"objective": "forest", "tree_dropout": 0.5}, "fits all trees together; set ensemble: joint and tree_dropout"),
        ({"objective": "forest", "ensemble": "alternating", "outputs": None}, "fits all trees together"),
        ({"tree_dropout": 0.5, "ensemble": "alternating", "outputs": None}, "one tree a batch; set tree_dropout: 0"),
        ({"buffer_rows": 3}, "buffer_rows 3 must be at least batches, 4"),
        ({"leaf_floor": 0.5}, "leaf_floor 0.5 must be below 1/6"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(LDLError, match=message):
        made(**options)


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


@pytest.mark.parametrize(("batches", "epochs", "expected"), [(None, 2, [4, 8]), (100, 1, [4]), (5, 3, [5, 10])])
def test_leaves_are_updated_in_runs_of_any_length(batches: int | None, epochs: int, expected: list[int]) -> None:
    """Of 4 batches an epoch; a run that reaches ``batches`` is as it was."""
    head, updates = LDLF(trees=2, depth=2, batches=batches), []
    task = Task(head, None, sgd)
    solve = head.update

    def update(collective: Collective) -> None:
        updates.append(task.trainer.global_step)
        solve(collective)

    head.update = update  # type: ignore[method-assign]
    train(task, Problem("rows"), epochs)
    assert updates == expected and float(head.leaves.std()) > 0.01


def test_a_run_that_ends_before_the_first_update_is_reported() -> None:
    head = LDLF(trees=2, depth=2, batches=6)

    class Stops(pl.Callback):
        def on_train_batch_end(self, trainer: pl.Trainer, *args: object) -> None:
            trainer.should_stop = trainer.global_step == 5

    data, task = Problem("rows"), Task(head, None, sgd)
    data.build(task)
    trainer = pl.Trainer(
        max_epochs=9, callbacks=[Stops()], accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    with pytest.warns(UserWarning, match="LDLF was never updated: training ended after 5 steps"):
        trainer.fit(task, datamodule=data)


def test_sharpening_beyond_the_run_is_reported() -> None:
    with pytest.warns(UserWarning, match="LDLF.anneal_steps 1000 is more than the 4 steps .* set it to 4"):
        train(Task(LDLF(trees=2, depth=2, anneal=2.0), None, sgd), Problem("rows"), 1)


def learned(data: TabularLDL | RotatedDigits, head: LDLF, steps: int) -> tuple[float, float]:
    """KL on the test fold of a trained head, and that of the constant predictor."""
    data.setup()

    def rows(part: Any) -> tuple[Tensor, Tensor]:
        inputs = data.inputs(part, np.zeros(len(part), int), train=False)
        return inputs.flatten(1), data.columns["target"][part]

    (features, target), (test_features, test_target) = rows(data.split.train), rows(data.split.test)
    mean = MeanPredictor()
    for each in (head, mean):
        each.build(features.shape[1], data.labels)
    mean.fit(Rows(features, target), Collective())
    optimizer = torch.optim.AdamW(head.parameters(), 3e-3)
    for _ in range(steps):
        pick = torch.randint(len(features), (64,))
        optimizer.zero_grad()
        losses = head.loss(features[pick], target[pick])
        losses["loss"].backward()
        optimizer.step()
        head.observe(losses["memory"], target[pick])
        if head.update_due:
            head.update(Collective())
    head.eval()
    with torch.no_grad():
        return kl(head(test_features), test_target).mean().item(), kl(mean(test_features), test_target).mean().item()


@pytest.mark.slow
def test_it_learns_sjaffe(ldl_data: Path) -> None:
    torch.manual_seed(0)
    data = TabularLDL("ldl/SJAFFE.mat", root=str(ldl_data), protocol="shuffled", val_fraction=0)
    forest, constant = learned(data, LDLF(depth=5, batches=20), 400)
    assert forest < 0.75 * constant


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{"hidden": [64]}, {"objective": "forest"}, {"ensemble": "alternating", "outputs": None}], ids=str
)
def test_it_learns_the_angle_of_digits(options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    forest, constant = learned(RotatedDigits(turns=1), LDLF(depth=6, batches=20, **options), 300)
    assert forest < 0.8 * constant


def forest_loss(head: LDLF, features: Tensor, target: Tensor) -> Tensor:
    """KL divergence from the mean of the trees' outputs."""
    return kl(sum(tree_outputs(head, features)) / head.trees, target).mean()  # type: ignore[arg-type]


def test_the_loss_is_that_of_what_is_predicted() -> None:
    head = made(objective="forest")
    features, target = batch()
    loss = head.loss(features, target)["loss"]
    torch.testing.assert_close(loss, forest_loss(head, features, target))
    torch.testing.assert_close(loss, kl(head(features), target).mean())
    assert loss < made().loss(features, target)["loss"] - 1e-3


def test_a_leaf_update_is_that_of_one_mixture_of_all_leaves() -> None:
    """Eq. 12 with the leaves of all trees as those of one, each reached with the mean of the trees' shares."""
    head = made(objective="forest", iterations=3, batches=2, leaf_floor=0.0)
    parts = [batch(seed=seed) for seed in range(2)]
    leaves = head.leaves.double()
    for features, target in parts:
        learn(head, features, target)
    features, target = (torch.cat(part).double() for part in zip(*parts))
    reach = head.route(features.float()).double() / head.trees
    for _ in range(3):
        output = sum(reach[:, k, leaf, None] * leaves[k, leaf] for k in range(3) for leaf in range(4))
        grown = torch.zeros_like(leaves)
        for k in range(3):
            for leaf in range(4):
                grown[k, leaf] = (target / output * reach[:, k, leaf, None]).sum(0) * leaves[k, leaf]
        leaves = grown / grown.sum(-1, keepdim=True)
    head.update(Collective())
    torch.testing.assert_close(head.leaves.double(), leaves, atol=1e-6, rtol=1e-5)
    apart = made(iterations=3, batches=2, leaf_floor=0.0)
    for part in parts:
        learn(apart, *part)
    apart.update(Collective())
    assert not torch.allclose(apart.leaves, head.leaves, atol=1e-3)


@pytest.mark.parametrize("routing", ["step", "current"])
def test_no_update_raises_the_loss(routing: str) -> None:
    head = made(objective="forest", iterations=1, batches=1, routing=routing)
    features, target = batch(rows=30)
    before = forest_loss(head, features, target)
    for _ in range(10):
        learn(head, features, target)
        head.update(Collective())
        after = forest_loss(head, features, target)
        assert after <= before + 1e-6
        before = after
    torch.testing.assert_close(head.leaves.sum(-1), torch.ones(3, 4))


def test_it_is_a_head() -> None:
    check_head(lambda: LDLF(trees=2, depth=3, outputs=None, hidden=[8], batches=2, objective="forest"))
