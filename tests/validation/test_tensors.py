"""What a checkpoint says was learned is checked before compiled code walks through it: no crash, no endless loop."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch
from checkpoints.make import FOLDER
from torch import Tensor

from ldl import heads
from ldl.bags import MILBoost, MPLBoost
from ldl.edges import StructuredEdges
from ldl.edges.structured.forest import EdgeForest, unlearned_forest
from ldl.errors import LDLError
from ldl.head import FittedHead, Head
from ldl.labels import LabelSpace
from ldl.task import Task
from ldl.validation.tensors import check_buffers

Mutation = Callable[[Tensor], Tensor]
BIG = 2**30


def put(value: float, *place: int) -> Mutation:
    """Another value in one place."""

    def change(tensor: Tensor) -> Tensor:
        tensor = tensor.clone()
        tensor[place or (0,) * tensor.ndim] = value
        return tensor

    return change


def fill(value: float) -> Mutation:
    return lambda tensor: torch.full_like(tensor, value)


def cut(tensor: Tensor) -> Tensor:
    return tensor[:-1]


def floating(tensor: Tensor) -> Tensor:
    return tensor.double() + 0.5


def no_rows(tensor: Tensor) -> Tensor:
    return tensor[:0]


CASES = [
    # name of the checkpoint, buffer of the head, how it is changed, what the message says
    ("structrf", "roots", fill(BIG), "roots holds 1073741824"),
    ("structrf", "roots", put(1, 0), "child makes no trees"),
    ("structrf", "feature", put(BIG), "feature holds 1073741824, which is not in -1..5"),
    ("structrf", "feature", put(-5), "feature holds -5"),
    ("structrf", "child", put(BIG), "child holds 1073741824"),
    ("structrf", "child", fill(0), "child makes no trees"),
    ("structrf", "child", put(-5), "child holds -5"),
    ("structrf", "child", cut, "child has shape"),
    ("structrf", "roots", no_rows, "child makes no trees"),
    ("structrf", "threshold", cut, "threshold has shape"),
    ("structrf", "threshold", put(float("nan")), "threshold holds nan"),
    ("structrf", "values", cut, "child holds"),
    ("structrf", "values", put(-0.5), "values row 0 is no distribution"),
    ("structrf", "values", put(float("nan")), "values holds nan"),
    ("structrf", "values", no_rows, "values has no distributions"),
    ("costsensitiveforest", "child", fill(0), "child makes no trees"),
    ("costsensitiveforest", "split", put(BIG), "split holds 1073741824"),
    ("costsensitiveforest", "columns", put(6), "columns holds 6, which is not in 0..5"),
    ("costsensitiveforest", "weights", put(float("inf")), "weights holds inf"),
    ("costsensitiveforest", "leaf_targets", fill(1.0), "leaf_targets row 0 is no distribution"),
    ("costsensitiveforest", "leaf_values", cut, "leaf_values has shape"),
    ("costsensitiveforest", "sizes", put(BIG), "sizes holds 1073741824"),
    ("costsensitiveforest", "scale", put(0.0), "scale holds 0, not a positive number"),
    ("costsensitiveforest", "centre", cut, r"centre has shape \(5,\), not \(F=6\)"),
    ("dsna", "rows", put(BIG), "rows holds 1073741824, which is not in 0..31"),
    ("dsna", "sizes", put(3), "sizes sums to"),
    ("dsna", "points", cut, "targets has shape"),
    ("dsna", "codes", put(float("nan")), "codes holds nan"),
    ("dsna", "targets", fill(0.5), "targets row 0 is no distribution"),
    ("mslp", "distributions", fill(-1.0), "distributions row 0"),
    ("mslp", "projection", cut, "projection has shape"),
    ("mslp", "root", put(float("nan")), "root holds nan"),
    ("aaknn", "distributions", cut, "distributions has shape"),
    ("aaknn", "points", no_rows, "distributions has shape"),
    ("maxent", "weight", put(float("inf")), "weight holds inf"),
    ("meanpredictor", "mean", fill(0.5), "mean row 0 is no distribution"),
    ("meanpredictor", "mean", lambda mean: torch.tensor([1.5, -0.5, 0, 0]), "row 0 is no distribution: least -0.5"),
    ("milboost", "feature", put(-7), "feature holds -7"),
    ("milboost", "threshold", cut, "threshold has shape"),
    ("mplboost", "group", put(2), "group holds 2, which is not in 0..1"),
    ("mplboost", "start", put(float("nan")), "start holds nan"),
    ("ldlf", "units", put(BIG), "units holds 1073741824, which is not in 0..4"),
    ("ldlf", "leaves", put(float("nan")), "leaves holds nan"),
    ("ldlf", "split.0.weight", put(float("inf")), "split.0.weight holds inf"),
    ("softmax", "logits.0.weight", put(float("nan")), "logits.0.weight holds nan"),
    ("bagged", "head.logits.0.bias", put(float("nan")), "logits.0.bias holds nan"),
    ("haar", "backbone.corners", put(-(2**40)), "corners holds -1099511627776"),
    ("haar_windows", "backbone.corners", fill(3), "corners holds"),
    ("timm", "backbone.network.conv1.0.weight", put(float("nan")), "network.conv1.0.weight holds nan"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "buffer", "change", "words"), CASES)
def test_changed_state_is_refused(name: str, buffer: str, change: Mutation, words: str, tmp_path: Any) -> None:
    checkpoint = torch.load(FOLDER / f"{name}.ckpt", weights_only=True)
    key = buffer if buffer.startswith("backbone.") else f"head.{buffer}"
    checkpoint["state_dict"][key] = change(checkpoint["state_dict"][key])
    torch.save(checkpoint, tmp_path / "changed.ckpt")
    with pytest.raises(LDLError, match=words):
        Task.load_from_checkpoint(tmp_path / "changed.ckpt")


def test_every_head_has_its_case() -> None:
    # Those that came later have theirs beside the other tests of the head.
    covered = {name for name, *_ in CASES} | {
        "structurededges",
        "boostedtrees",
        "mirrored",
        "pool",
        "scaled",
        "trained",
    }
    assert {name.lower() for name in heads.__all__} <= covered


FITTED = [cls for name in heads.__all__ if issubclass(cls := getattr(heads, name), FittedHead)]


@pytest.mark.parametrize("cls", [*FITTED, MILBoost, MPLBoost])
def test_every_fitted_buffer_has_a_rule(cls: type[FittedHead]) -> None:
    head = cls()
    head.build(6, LabelSpace.ordinal([1, 2]))
    assert {name for name in head.state_dict() if "." not in name} == head.describe_buffers().keys()


RULES = [
    ("N C: finite", None),
    ("2 3", None),
    ("...: positive", "not a positive number"),
    ("N: finite", r"has shape \(2, 3\), not \(N=2\)"),
    ("N N: finite", r"has shape \(2, 3\), not \(N=2, N=2\)"),
    ("2 4", r"not \(2, 4\)"),
    ("N C: not negative", "holds -1, not a number of at least 0"),
    ("N C: distributions", "is no distribution"),
    ("N C: bool", "is of torch.float32, not of bool"),
    ("N C: -1 <= number < C", "not integers"),
]


@pytest.mark.parametrize(("rule", "words"), RULES)
def test_a_rule_says_shape_and_numbers(rule: str, words: str | None) -> None:
    module = torch.nn.Module()
    module.register_buffer("points", torch.tensor([[-1.0, 0.0, 2.0], [1.0, 0.0, 2.0]]))
    with nullcontext() if words is None else pytest.raises(LDLError, match=f"points .*{words}"):
        check_buffers(module, {"points": rule})


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("N: -1 <= number < F", "holds 3, which is not in -1..2"),
        ("N: -1 <= number <= F", None),
        ("N: 0 <= number <= 3", "-1"),
    ],
)
def test_a_rule_of_integers_says_their_range(rule: str, words: str | None) -> None:
    module = torch.nn.Module()
    module.register_buffer("split", torch.tensor([-1, 0, 3]))
    with nullcontext() if words is None else pytest.raises(LDLError, match=f"split .*{words}"):
        check_buffers(module, {"split": rule}, F=3)


def test_a_letter_is_one_length_in_all_buffers() -> None:
    module = torch.nn.Module()
    module.register_buffer("points", torch.zeros(2, 3))
    module.register_buffer("weights", torch.ones(4))
    assert check_buffers(module, {"points": "N F", "weights": "M"}, F=3) == {"F": 3, "N": 2, "M": 4}
    with pytest.raises(LDLError, match=r"weights has shape \(4,\), not \(N=2\)"):
        check_buffers(module, {"points": "N F", "weights": "N"})


def test_an_unknown_kind_of_numbers_is_a_mistake_of_the_head() -> None:
    module = torch.nn.Module()
    module.register_buffer("points", torch.zeros(2))
    with pytest.raises(KeyError, match="finte"):
        check_buffers(module, {"points": "N: finte"})


@pytest.fixture(scope="module")
def edges() -> tuple[StructuredEdges, dict[str, Tensor]]:
    """A head with a tree of two leaves, which keep three patches, and its state."""
    head = StructuredEdges(trees=1, kept=2, components=3, votes=1)
    head.build(3, LabelSpace.nominal(["no edge", "edge"]))
    lone, halves = np.zeros(256, np.uint8), np.repeat(np.arange(2, dtype=np.uint8), 128)
    kept = unlearned_forest(3).kept
    assert kept is not None
    kept = kept._replace(
        start=np.array([0, 1, 3]), segments=np.stack([lone, halves, halves]), points=np.zeros((3, 3), np.float32)
    )
    forest = EdgeForest(
        np.zeros(1, np.int32), np.array([[5], [-1], [-1]], np.int32), np.ones((3, 1), np.float32),
        np.zeros(3, np.float32), np.array([1, 0, 1], np.int32), np.stack([lone, halves]), kept,
    )  # fmt: skip
    head._hold(forest, torch.device("cpu"))
    return head, {name: buffer.clone() for name, buffer in head.state_dict().items()}


@pytest.mark.parametrize(
    ("buffer", "change", "words"),
    [
        ("child", put(BIG), "child holds 1073741824"),
        ("child", put(-5), "child holds -5"),
        ("child", fill(0), "child makes no trees"),
        ("roots", put(BIG), "roots holds 1073741824"),
        ("feature", put(7228), "feature holds 7228, which is not in -1..7227"),
        ("weight", put(float("nan")), "weight holds nan"),
        ("segments", lambda segments: segments[:, :100], "segments has shape"),
        ("segments", fill(9), "[^_]segments row 0 leaves out a number"),
        ("kept_start", put(BIG), "kept_start holds 1073741824"),
        ("kept_start", cut, "kept_start does not share"),
        ("kept_points", cut, "kept_points has shape"),
        ("kept_segments", fill(1), "kept_segments row 0 leaves out a number"),
    ],
)
def test_a_changed_forest_of_edges_is_refused(
    edges: tuple[StructuredEdges, dict[str, Tensor]], buffer: str, change: Mutation, words: str
) -> None:
    head, state = edges
    with pytest.raises(LDLError, match=words):
        head.load_state_dict(state | {buffer: change(state[buffer])})
    head.load_state_dict(state)


@pytest.mark.parametrize("kind", [heads.StructRF, heads.CostSensitiveForest])
def test_a_path_is_no_longer_than_the_depth(kind: type[Head]) -> None:
    checkpoint = torch.load(FOLDER / f"{kind.__name__.lower()}.ckpt", weights_only=True)
    _load(kind, checkpoint)
    checkpoint["ldl"]["head"]["init_args"]["depth"] = 2
    with pytest.raises(LDLError, match="more than 2 splits on a path"):
        _load(kind, checkpoint)


def _load(kind: type[Head], checkpoint: dict[str, Any]) -> Head:
    head = kind(**checkpoint["ldl"]["head"]["init_args"])
    head.build(6, LabelSpace.from_dict(checkpoint["ldl"]["labels"]))
    state = {name.removeprefix("head."): value for name, value in checkpoint["state_dict"].items() if "head." in name}
    head.load_state_dict(state)
    return head
