"""Heads that learn by gradient, trained without a trainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.backbones import Identity, Tabular
from ldl.backbones.base import WholeImages
from ldl.bags import MILBoost
from ldl.collective import Collective
from ldl.data.tables.scaling import FeatureScaler
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import LDLF, Softmax, StructRF, Trained
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.metrics.functional import kl
from ldl.testing import check_head

LABELS = LabelSpace.ordinal([10, 20, 30, 40])
FOREST: dict[str, Any] = {"trees": 3, "depth": 4, "outputs": None, "batches": 3}
NETWORK: dict[str, Any] = {"members": 3, "hidden": [16], "dropout": 0.2, "embedding": 4, "bins": 5}


def problem(rows: int = 90) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    features = 5 + 3 * torch.randn(rows, 5, generator=generator)
    return features, (features @ torch.randn(5, 4, generator=generator) / 3).softmax(-1)


def fitted(head: Head | None = None, **options: Any) -> Trained:
    trained = Trained(head, **{"epochs": 5, "batch_size": 32, "seed": 3, **options})  # type: ignore[arg-type]
    trained.build(5, LABELS)
    trained.fit(Rows(*problem()), Collective())
    return trained


@pytest.mark.parametrize(
    "make",
    [
        lambda: Trained(epochs=20, lr=0.03),
        lambda: Trained(LDLF(**FOREST), epochs=10, lr=0.03, scaling="quantile_normal", clip=3.0, mixup=0.2),
        lambda: Trained(LDLF(**FOREST), Tabular(**NETWORK), epochs=10, scaling="ranks", validation=0.2),
        lambda: Trained(backbone=Identity(), epochs=20, lr=0.03),
    ],
    ids=["softmax", "ldlf", "ldlf behind a network", "softmax behind nothing"],
)
def test_contract(make: Any) -> None:
    check_head(make)


def test_one_batch_an_epoch_is_adam_with_a_cosine() -> None:
    features, target = problem()
    trained = fitted(epochs=7, batch_size=90, lr=0.1, weight_decay=0.02)
    with torch.random.fork_rng():
        torch.manual_seed(hash((3, 0)) % 2**63)
        head = Softmax()
        head.build(5, LABELS)
    first, second = ([torch.zeros_like(p) for p in head.parameters()] for _ in range(2))
    for step in range(7):
        loss = kl(head(features), target).mean()
        rate = 0.1 * (1 + np.cos(np.pi * step / 7)) / 2
        gradients = torch.autograd.grad(loss, list(head.parameters()))
        for p, g, m, v in zip(head.parameters(), gradients, first, second):
            m.mul_(0.9).add_(0.1 * g)
            v.mul_(0.999).add_(0.001 * g**2)
            change = m / (1 - 0.9 ** (step + 1)) / ((v / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8)
            p.data -= rate * (0.02 * p.data + change)
    torch.testing.assert_close(trained(features), head(features), atol=1e-5, rtol=0)


@pytest.mark.parametrize("head", [Softmax(hidden=[8], dropout=0.3), LDLF(**FOREST, hidden=[8], dropout=0.3)])
def test_the_seed_alone_decides(head: Head) -> None:
    features, states = problem()[0], []
    for number in (1, 2):
        torch.manual_seed(number)
        states.append(torch.get_rng_state())
        one = fitted(head, mixup=0.4)(features)
        assert torch.equal(torch.get_rng_state(), states[-1])
        assert torch.equal(one, fitted(head, mixup=0.4)(features))
    assert not torch.equal(one, fitted(head, mixup=0.4, seed=4)(features))
    assert not torch.equal(one, fitted(head)(features))


def test_leaves_are_updated_and_dropout_is_off() -> None:
    trained = fitted(LDLF(**FOREST, hidden=[8], dropout=0.5))
    leaves: Tensor = trained.members[0].leaves  # type: ignore[assignment]
    assert (leaves - 0.25).abs().max() > 0.01
    features = problem()[0]
    assert torch.equal(trained.train()(features), trained.eval()(features))
    assert not any(parameter.requires_grad for parameter in trained.parameters())


@pytest.mark.parametrize("mean", ["arithmetic", "geometric"])
def test_repeats_are_averaged(mean: Any) -> None:
    features, target = problem()
    trained = fitted(Softmax(hidden=[8]), repeats=3, mean=mean)
    each = torch.stack([member(features) for member in trained.members])
    assert len(each.unique(dim=0)) == 3
    assert torch.equal(each[0], fitted(Softmax(hidden=[8]))(features))
    expected = each.mean(0) if mean == "arithmetic" else each.log().mean(0).softmax(-1)
    torch.testing.assert_close(trained(features), expected)
    assert kl(trained(features), target).mean() <= kl(each, target).mean()


@pytest.mark.parametrize("scaling", ["standard", "quantile_normal"])
def test_features_are_scaled_by_what_the_fitted_rows_taught(scaling: Any) -> None:
    features, _ = problem()
    scaler = FeatureScaler(scaling, 2.0)
    scaler.fit(features.double().numpy())
    trained, new = fitted(scaling=scaling, clip=2.0), 2 * features[:20] - 5
    scaled = torch.from_numpy(scaler.transform(new.double().numpy())).float()
    torch.testing.assert_close(trained(new), trained.members[0](scaled))
    before = trained.state_dict()
    for name in trained.exact:  # also where the weights are rounded
        assert torch.equal(trained.bfloat16().state_dict()[name], before[name])


def test_a_value_reaches_the_loss() -> None:
    features, target = problem()
    value = torch.full((90,), 40.0)
    trained = Trained(Softmax("l1"), epochs=60, lr=0.1, seed=0)
    trained.build(5, LABELS)
    trained.fit(Rows(features, target, value=value), Collective())
    assert trained(features)[:, 3].mean() > 0.9


@pytest.mark.parametrize("head", [StructRF(), MILBoost(), Trained()])
def test_heads_of_another_kind_are_refused(head: Head) -> None:
    with pytest.raises(LDLError, match=f"Trained.head {type(head).__name__} must take single rows and learn by grad"):
        fitted(head)


def test_a_loss_that_grows_is_told_with_its_fix() -> None:
    with pytest.raises(LDLError, match="Trained.head Softmax learned numbers that are not finite; lower Trained.lr 1e"):
        fitted(Softmax(hidden=[8]), lr=1e37)


@pytest.mark.parametrize(
    ("buffer", "change", "words"),
    [
        ("scaling_mean", lambda t: t * torch.nan, "mean of the features is no scaling"),
        ("scaling_scale", lambda t: -t, "scale of the features is no scaling"),
        ("scaling_scale", lambda t: t[:3], "scaling_scale has shape"),
        ("members.0.logits.0.weight", lambda t: t / 0, "weight holds"),
    ],
)
def test_a_changed_state_is_refused(buffer: str, change: Any, words: str) -> None:
    state = fitted(scaling="standard").state_dict()
    other = Trained(scaling="standard")
    other.build(5, LABELS)
    with pytest.raises(LDLError, match=words):
        other.load_state_dict(state | {buffer: change(state[buffer])})


@pytest.mark.parametrize(("steps", "epochs"), [(7, 2), (8, 3), (1, 1), (1000, 5)])
def test_so_many_steps_at_most(steps: int, epochs: int) -> None:
    features, _ = problem()  # three batches an epoch
    assert torch.equal(fitted(steps=steps)(features), fitted(epochs=epochs)(features))


def test_members_of_a_backbone_are_averaged() -> None:
    trained, features = fitted(Softmax("l1"), backbone=Tabular(**NETWORK)), problem()[0]
    each = trained.members[0](trained.backbones[0](features))
    assert each.shape == (90, 3, 4) and len(each[0].unique(dim=0)) == 3
    torch.testing.assert_close(trained(features), each.mean(1))
    torch.testing.assert_close(trained(features.reshape(9, 10, 5)), each.mean(1).reshape(9, 10, 4))
    assert torch.equal(trained(features[0]), trained(features[:1])[0])
    assert not any(parameter.requires_grad for parameter in trained.parameters())


@pytest.mark.parametrize("count", [4097, 9000])
def test_many_rows_go_through_the_backbone_in_parts(count: int) -> None:
    trained = fitted(backbone=Tabular(**NETWORK))
    features = problem(count)[0]
    torch.testing.assert_close(trained(features), torch.cat([trained(part) for part in features.split(1000)]))


def test_the_epoch_of_the_lowest_validation_kl_is_kept() -> None:
    """A network that overfits a few rows: without validation it ends with a higher KL on the rows held out."""
    features, target = problem(60)
    target = target[torch.randperm(60, generator=torch.Generator().manual_seed(1))]
    rows = Rows(features, target)
    last, best = (
        Trained(Softmax(hidden=[64]), epochs=60, batch_size=16, lr=0.02, validation=share, seed=3) for share in (0, 0.3)
    )
    for trained in (last, best):
        trained.build(5, LABELS)
    train, held_out = rows.hold_out(0.3, 3)
    last.fit(rows[torch.from_numpy(train)], Collective())
    best.fit(rows, Collective())
    last_kl, best_kl = (kl(each(features[held_out]), target[held_out]).mean() for each in (last, best))
    assert best_kl < 0.9 * last_kl
    whole = fitted(Softmax(hidden=[8]), validation=None)  # 90 rows are too few for a tenth
    assert torch.equal(whole(features), fitted(Softmax(hidden=[8]))(features))


@pytest.mark.filterwarnings("error::UserWarning")
def test_a_fit_anew_forgets_the_former_rows() -> None:
    trained, (features, target) = fitted(backbone=Tabular(**NETWORK), scaling="ranks"), problem()
    fewer = Rows(features.round().clamp(4, 6), target)  # fewer pieces of the embeddings
    trained.fit(fewer, Collective())
    other = Trained(backbone=Tabular(**NETWORK), epochs=5, batch_size=32, seed=3, scaling="ranks")
    other.build(5, LABELS)
    other.fit(fewer, Collective())
    assert torch.equal(trained(features), other(features))
    copied = Trained(backbone=Tabular(**NETWORK), scaling="ranks")
    copied.build(5, LABELS)
    copied.load_state_dict(trained.state_dict())
    assert torch.equal(copied(features), trained(features))
    assert not any(parameter.requires_grad for parameter in copied.parameters())


def test_a_backbone_of_images_is_refused() -> None:
    with pytest.raises(LDLError, match="WholeImages got inputs of 5; it takes colour images"):
        fitted(backbone=WholeImages())
