"""The network for tables: members, embeddings, its state, and heads on it in a task."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytorch_lightning as pl
import torch
from fakes.flag_tables import write_flags
from torch import Tensor, nn

from ldl.backbones import Tabular
from ldl.collective import Collective
from ldl.data import TabularLDL
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, BoostedTrees, Softmax
from ldl.labels import LabelSpace
from ldl.methods.forest.soft import update_leaves
from ldl.task import Task

ROWS = torch.cat([torch.randint(0, 2, (40, 28)).float(), torch.randn(40, 2)], 1)
"""Rows with two numbers beside 28 features of two numbers."""


def built(rows: Tensor = ROWS, **options: Any) -> Tabular:
    backbone = Tabular(members=3, hidden=[5], bins=4, **options)
    backbone.build(tuple(rows.shape[1:]))
    backbone.learn_inputs(rows)
    return backbone.eval()


def test_members_follow_the_definition_in_float64() -> None:
    """Member k: s_k * (W (r_k * x)) + b_k, a ReLU, and a scale of its features (TabM, Gorishniy et al. 2025)."""
    torch.manual_seed(0)
    rows = torch.randn(6, 4, dtype=torch.float64)
    backbone = built(rows, embedding=0).double()
    layer, scale = backbone.network[2], backbone.network[5].weight
    for member in range(3):
        hidden = (rows * layer.r[member]) @ layer.weight.T * layer.s[member] + layer.bias[member]
        expected = hidden.clamp_min(0) * scale[member]
        torch.testing.assert_close(backbone(rows)[:, member], expected)
    assert set(layer.r.flatten().tolist()) == {-1.0, 1.0} == set(scale.flatten().tolist())
    assert bool((layer.s == 1).all())


def test_the_first_layer_learns_the_same_from_few_entries_alone() -> None:
    torch.manual_seed(0)
    rows = torch.zeros(7, 60, dtype=torch.float64)
    rows[[0, 0, 2, 6, 5], [3, 41, 41, 0, 59]] = torch.tensor([1, -2, 0.5, 1, 3], dtype=torch.float64)
    found = []
    for inputs in (rows, rows + 1e-300):  # of the second, no entry is 0
        backbone = built(rows, embedding=0, dropout=0, feature_dropout=0).double().train()
        backbone.load_state_dict(found[0][0] if found else backbone.state_dict())
        inputs = inputs.requires_grad_()
        features = backbone(inputs)
        features.square().sum().backward()
        gradients = [parameter.grad for parameter in backbone.parameters()]
        found.append((backbone.state_dict(), features, inputs.grad, gradients))
    (_, sparse, sparse_inputs, sparse_gradients), (_, dense, dense_inputs, gradients) = found
    torch.testing.assert_close(sparse, dense)
    torch.testing.assert_close(sparse_gradients, gradients)
    torch.testing.assert_close(sparse_inputs[rows != 0], dense_inputs[rows != 0])


def test_embeddings_that_are_0_learn_from_few_entries() -> None:
    rows = torch.cat([torch.zeros(40, 400), torch.linspace(-1, 1, 40).unsqueeze(1)], 1)
    backbone = built(rows, embedding=1).train()
    with torch.no_grad():
        for parameter in backbone.embeddings.parameters():
            parameter.zero_()
    backbone(rows).square().sum().backward()
    assert any(parameter.grad.abs().sum() > 0 for parameter in backbone.embeddings.parameters())


def test_dropout_of_few_entries_is_of_every_member_apart() -> None:
    rows = torch.zeros(400, 60)
    rows[:, 7] = 1
    backbone = built(rows, embedding=0, dropout=0, feature_dropout=0.25).train()
    layer = backbone.network[2]
    with torch.no_grad():
        outputs = backbone._sum_entries(rows)
    kept = (outputs != layer.bias).any(-1)
    assert kept.float().mean(0).tolist() == pytest.approx([0.75] * 3, abs=0.1)
    assert not torch.equal(kept[:, 0], kept[:, 1])
    # What is kept is divided by the share that is.
    expected = (layer.weight[:, 7] * layer.r[:, 7:8] / 0.75 * layer.s + layer.bias).expand(400, -1, -1)
    torch.testing.assert_close(outputs[kept], expected[kept])


def test_embeddings_are_of_numbers_and_only_where_these_are_few() -> None:
    assert built().numbers.tolist() == [28, 29]
    assert built(ROWS[:, 20:]).numbers.tolist() == []  # two of ten features
    assert built(ROWS[:, 20:], embedding=2).numbers.tolist() == [8, 9]
    assert built(embedding=0).embeddings is None


def test_pieces_end_at_quantiles_and_begin_as_a_line() -> None:
    backbone = built()
    levels = np.linspace(0, 1, 5)
    np.testing.assert_allclose(backbone.edges, np.quantile(ROWS[:, 28:].numpy(), levels, axis=0).T, rtol=1e-5)
    assert isinstance(backbone.embeddings, nn.Module)
    line = torch.linspace(-3, 3, 7).unsqueeze(1).expand(-1, 2).contiguous()
    steps = backbone.embeddings(line).diff(dim=0)
    torch.testing.assert_close(steps, steps[:1].expand_as(steps))


def test_features_count_by_the_rows_of_their_rarer_number() -> None:
    """n / (n + 20) for a feature of two numbers, whichever is the rarer one; numbers and constants as they are."""
    rows = torch.randn(40, 4)
    rows[:, 0], rows[:, 1], rows[:, 2] = (torch.arange(40) < 5) * 1.0, (torch.arange(40) < 30) * 2.0 - 1.0, 7.0
    whole, shrunk = built(rows, shrinkage=0), built(rows)
    factors = torch.tensor([5 / 25, 10 / 30, 1.0, 1.0])
    assert torch.equal(whole.factors, torch.ones(4)) and torch.equal(shrunk.factors, factors)
    shrunk.load_state_dict({**whole.state_dict(), "factors": factors})
    assert torch.equal(shrunk(rows), whole(rows * factors))


def test_learning_twice_changes_nothing() -> None:
    backbone = built()
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    backbone.learn_inputs(torch.randn(40, 30))
    assert all(torch.equal(tensor, before[name]) for name, tensor in backbone.state_dict().items())


def test_a_state_brings_its_embeddings() -> None:
    first, file = built(), io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = Tabular(members=3, hidden=[5], bins=4)
    second.build((30,))
    second.load_state_dict(torch.load(file, weights_only=True))
    torch.testing.assert_close(second.eval()(ROWS), first(ROWS))


def test_a_checkpoint_brings_them_to_a_backbone_without_memory() -> None:
    """Checkpoints are compared with a task on the device ``meta``, whose tensors have no numbers yet."""
    first = built()
    with torch.device("meta"):
        second = Tabular(members=3, hidden=[5], bins=4)
        second.build((30,))
    second.complete_state(first.state_dict(), "")
    assert {name: held.shape for name, held in second.state_dict().items()} == {
        name: held.shape for name, held in first.state_dict().items()
    }


@pytest.mark.parametrize(
    "name, change, words",
    [
        ("factors", lambda held: held / 0, "factors holds inf, not a finite number"),
        ("numbers", lambda held: held + 2, "numbers holds 30, which is not in 0..29"),
        ("edges", lambda held: held.flip(1), "edges holds pieces that end before they begin"),
        ("edges", lambda held: torch.full_like(held, torch.nan), "edges holds nan, not a finite number"),
        ("edges", torch.zeros_like, "edges holds pieces that end before they begin, or none"),
        ("embeddings.linear.weight", lambda held: held[:, :2], "embeddings.linear.weight is not of 2 numbers in 4"),
    ],
)
def test_a_damaged_state_is_refused(name: str, change: Any, words: str) -> None:
    state = built().state_dict()
    state[name] = change(state[name])
    backbone = Tabular(members=3, hidden=[5], bins=4)
    backbone.build((30,))
    with pytest.raises(LDLError, match=words):
        backbone.load_state_dict(state)


@pytest.mark.parametrize(
    "options, shape, words",
    [
        ({}, (3, 8, 8), "takes rows of features, got inputs of 3x8x8; use the Timm backbone"),
        ({"hidden": []}, (4,), r"Tabular.hidden is empty; give the width of a layer, such as \[256\]"),
        ({"members": 0}, (4,), "Tabular.members 0 must be"),
        ({"dropout": 1.0}, (4,), "Tabular.dropout 1.0 must be"),
    ],
)
def test_errors(options: dict[str, Any], shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(LDLError, match=words):
        Tabular(**options).build(shape)


def test_a_head_that_is_fitted_in_one_go_is_refused() -> None:
    with pytest.raises(
        LDLError, match="BoostedTrees is fitted in one go, and the members of Tabular learn with a head"
    ):
        Task(BoostedTrees(), Tabular()).build(LabelSpace.nominal(["a", "b"]), (3,))


class Plain(Head):
    """A head of the contract alone: forward, and the loss that Head has."""

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.layer = nn.Linear(in_features, len(labels))

    def forward(self, features: Tensor) -> Tensor:
        return self.layer(features).softmax(-1)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_flags(tmp_path, 22)


def data_of(table: Path) -> TabularLDL:
    return TabularLDL(path=str(table), scaling="ranks", batch_size=16, val_fraction=0.0, folds=3)


def fitted(head: Head, table: Path, epochs: int = 3) -> Task:
    pl.seed_everything(0)
    task = Task(head, Tabular(members=4, hidden=[8]), optimizer=lambda groups: torch.optim.AdamW(groups, lr=1e-2))
    quiet: dict[str, Any] = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(max_epochs=epochs, accelerator="cpu", enable_model_summary=False, **quiet)
    trainer.fit(task, datamodule=data_of(table))
    return task.eval()


@pytest.mark.parametrize(
    "make", [Softmax, lambda: LDLF(trees=2, depth=3, outputs=None, batches=2), Plain], ids=["Softmax", "LDLF", "Plain"]
)
def test_any_head_learns_on_it(make: Any, table: Path) -> None:
    torch.manual_seed(0)
    task = fitted(make(), table, epochs=12)
    data = data_of(table)
    data.setup()
    rows, target = data.inputs(data.split.test, data.split.test, train=False), data.columns["target"][data.split.test]
    with torch.no_grad():
        prediction = task(rows)
        members = task.head(task.backbone(rows))
    assert members.shape == (30, 4, 3)
    torch.testing.assert_close(prediction, members.mean(1))
    mean = data.columns["target"][data.split.train].mean(0)
    divergence = [(target * (target.log() - p.log())).sum(1).mean() for p in (prediction, mean.expand_as(target))]
    assert divergence[0] < 0.8 * divergence[1]


def test_the_loss_is_the_mean_of_the_members_losses(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64, by the definition of the divergence, on the first batch that a task learns from."""
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    plain = Softmax.loss

    def loss(head: Softmax, features: Tensor, target: Tensor, **columns: Any) -> dict[str, Tensor]:
        losses = plain(head, features, target, **columns)
        seen.append((head(features).detach().double(), target.double(), losses["loss"].detach()))
        return losses

    monkeypatch.setattr(Softmax, "loss", loss)
    fitted(Softmax(), table, epochs=1)
    members, target, value = seen[0]
    assert members.shape == target.shape == (16, 4, 3) and torch.equal(target[:, 0], target[:, 3])
    each = [(target[:, k] * (target[:, k] / members[:, k]).log()).sum(-1).mean() for k in range(4)]
    torch.testing.assert_close(value.double(), torch.stack(each).mean(), rtol=1e-5, atol=1e-7)


def test_leaves_are_solved_on_the_rows_of_all_members(table: Path) -> None:
    head = LDLF(trees=2, depth=3, outputs=None, batches=1)
    task = fitted(head, table, epochs=1)
    routing, target = torch.rand(5, 4, *head.leaves.shape[:2]).softmax(-1), torch.rand(5, 3).softmax(-1)
    expected = update_leaves(routing.flatten(0, 1), target.repeat_interleave(4, 0), head.leaves, 20, Collective())
    head.forget()
    head.observe(routing, target.unsqueeze(1).expand(-1, 4, -1))
    head.update(Collective())
    torch.testing.assert_close(head.leaves, expected)
    evidence = head.evidence(task.backbone(torch.randn(1, 24))[0])
    assert evidence is not None
