"""A head and the mirror images of its rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ldl.bags import Bagged, MILBoost
from ldl.collective import Collective
from ldl.data.tables.reading import read_table
from ldl.edges import StructuredEdges
from ldl.errors import LDLError
from ldl.head import FittedHead, Head
from ldl.heads import AAKNN, BoostedTrees, CostSensitiveForest, MaxEnt, Mirrored, Pool, Softmax, StructRF, Trained
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.testing import check_head

LABELS = LabelSpace.ordinal([10, 20, 30, 40])
MIRROR = [1, 0, 2, 4, 3, 5]


def problem(rows: int = 60) -> tuple[Tensor, Tensor]:
    """Distributions that a mirror leaves as they are."""
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(rows, 6, generator=generator)
    weights = torch.randn(6, 4, generator=generator)
    return features, (features @ (weights + weights[MIRROR])).softmax(-1)


def fitted(head: FittedHead, features: Tensor, target: Tensor, **columns: Tensor) -> Any:
    head.build(features.shape[1], LABELS)
    head.fit(Rows(features, target, **columns), Collective())
    return head


def test_contract() -> None:
    check_head(lambda: Mirrored(AAKNN(3), MIRROR))


def test_it_is_the_head_fitted_on_both_and_asked_about_both() -> None:
    features, target = problem()
    head = fitted(Mirrored(AAKNN(3), MIRROR), features, target)
    alone = fitted(AAKNN(3), torch.cat([features, features[:, MIRROR]]), torch.cat([target, target]))
    new = torch.randn(20, 6, generator=torch.Generator().manual_seed(1))
    logs = (alone(new).double().log() + alone(new[:, MIRROR]).double().log()) / 2
    torch.testing.assert_close(head(new).double(), logs.softmax(-1), atol=1e-6, rtol=0)
    torch.testing.assert_close(head(new), head(new[:, MIRROR]), atol=1e-7, rtol=0)
    assert (head(new) - fitted(AAKNN(3), features, target)(new)).abs().max() > 0.01
    none = fitted(Mirrored(AAKNN(3)), features, target)
    assert torch.equal(none(new), fitted(AAKNN(3), features, target)(new))


@pytest.mark.parametrize(
    "make",
    [partial(BoostedTrees, rounds=20, seed=0, validation=0.3), partial(StructRF, trees=20, sampling=0.3, seed=0)],
    ids=["validation", "out_of_bag"],
)
def test_a_row_and_its_image_stay_together(make: Callable[[], FittedHead]) -> None:
    features, target = problem()
    both = torch.cat([features, features[:, MIRROR]]), torch.cat([target, target])
    alone = fitted(make(), *both, group=torch.arange(60).repeat(2))
    assert fitted(Mirrored(make(), MIRROR), features, target).summary() == alone.summary()
    group = torch.arange(60) // 6
    grouped = fitted(make(), *both, group=group.repeat(2))
    found = fitted(Mirrored(make(), MIRROR), features, target, group=group)
    assert found.summary() == grouped.summary() != alone.summary()


def forest() -> CostSensitiveForest:
    return CostSensitiveForest(trees=2, depth=2, seed=0)


def test_values_go_with_rows_and_come_as_means() -> None:
    features, target = problem()
    value = torch.arange(60.0) % 31 + 10
    head = fitted(Mirrored(forest(), MIRROR), features, target, value=value)
    both = torch.cat([features, features[:, MIRROR]]), torch.cat([target, target])
    alone = fitted(forest(), *both, value=torch.cat([value, value]))
    found, wanted = head.point_estimate(features), alone.point_estimate(features)
    torch.testing.assert_close(found, (wanted + alone.point_estimate(features[:, MIRROR])) / 2)
    assert (found - wanted).abs().max() > 0.1
    assert fitted(Mirrored(MaxEnt(), MIRROR), features, target).point_estimate(features) is None
    plain = fitted(Mirrored(forest()), features, target, value=value)
    unmirrored = fitted(forest(), features, target, value=value)
    assert torch.equal(plain.point_estimate(features), unmirrored.point_estimate(features))


def test_it_is_saved_and_halved() -> None:
    features, target = problem()
    head = fitted(Mirrored(MaxEnt(), MIRROR), features, target)
    again = Mirrored(MaxEnt(), MIRROR)
    again.build(6, LABELS)
    again.load_state_dict(head.state_dict())
    assert torch.equal(again(features), head(features)) and "places" not in head.state_dict()
    half = copy.deepcopy(head).to(torch.bfloat16)
    torch.testing.assert_close(half(features.bfloat16()).float(), head(features), atol=0.02, rtol=0)


def test_histograms_of_patterns_have_their_own_mirror() -> None:
    features = torch.rand(30, 59, generator=torch.Generator().manual_seed(0))
    head = fitted(Mirrored(MaxEnt(l2=0.1), "lbp"), features, problem(30)[1])
    assert sorted(head.places.tolist()) == list(range(59)) != head.places.tolist()
    torch.testing.assert_close(head(features), head(features[:, head.places]), atol=1e-7, rtol=0)


def test_in_a_pool_it_has_the_name_of_its_head(capsys: pytest.CaptureFixture) -> None:
    pool = Pool([Mirrored(), MaxEnt(l2=0.1), Mirrored(StructRF(trees=2))], folds=3)
    assert pool.names == ["MaxEnt_1", "MaxEnt_2", "StructRF"]
    head = Mirrored(MaxEnt(), MIRROR)
    head.shows_progress = True
    assert "l2" in fitted(head, *problem()).summary() and "choosing l2" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (Softmax(), "Mirrored.head Softmax is not fitted on rows; put it into Trained"),
        (Bagged(), "Mirrored.head Bagged is not fitted on rows; put it into Trained"),
        (MILBoost(), "Mirrored.head MILBoost is not fitted on rows; mirror its images"),
        (StructuredEdges(), "Mirrored.head StructuredEdges is not fitted on rows; mirror its images"),
    ],
)
def test_other_heads_are_refused(head: Head, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        Mirrored(head).build(6, LABELS)
    Mirrored(Trained(Softmax(), epochs=1)).build(6, LABELS)


@pytest.mark.parametrize(
    ("mirror", "words"),
    [
        ("lbp", "^Mirrored.mirror lbp: 6 features are no histogram of uniform local binary patterns"),
        (MIRROR[:5], r"^Mirrored.mirror has 5 numbers; it takes each of 0 to 5 once$"),
        ([0, 1, 2, 3, 4, 4], "it takes each of 0 to 5 once"),
        ([0, 2, 3, 1, 4, 5], "puts feature 1 in the place of 2, but that in the place of 3; mirrored twice"),
    ],
)
def test_what_is_no_mirror_is_refused(mirror: Any, words: str) -> None:
    with pytest.raises(LDLError, match=words):
        Mirrored(mirror=mirror).build(6, LABELS)


def test_the_published_faces_look_alike_in_a_mirror(ldl_data: Path) -> None:
    """That is how it is known what their features are: the mean face is about the same on both sides."""
    table = read_table(ldl_data / "ldl/SBU_3DFE.mat")
    means = np.log(np.asarray(table.features, float).mean(0))
    head = Mirrored(mirror="lbp")
    head.build(243, LABELS)
    apart = np.abs(means - means[head.places.numpy()])
    others = [np.abs(means - np.random.default_rng(seed).permutation(means)).mean() for seed in range(5)]
    assert apart.mean() < 0.025 < 0.1 * min(others)
