"""``check_head`` holds for every head, with every kind of option, and names what a bad head breaks."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from ldl.collective import Collective
from ldl.edges import StructuredEdges
from ldl.head import AlternatingHead, Head
from ldl.heads import LDLF, MeanPredictor, Softmax
from ldl.labels import LabelSpace
from ldl.testing import check_head

GOOD: dict[str, Callable[[], Head]] = {
    "LDLF": LDLF,
    "LDLF tuned": lambda: LDLF(
        10, 4, None, batches=7, hidden=[16], dropout=0.1, feature_dropout=0.1, tree_dropout=0.2, leaf_smoothing=0.1
    ),
    "LDLF current": lambda: LDLF(depth=4, batches=6, routing="current", buffer_rows=120, anneal=2.0, anneal_steps=30),
    "LDLF alternating": lambda: LDLF(depth=4, outputs=None, ensemble="alternating", batches=10),
    "MeanPredictor": MeanPredictor,
    **{f"Softmax {o}": lambda o=o: Softmax(o) for o in ("kl", "dldl_v2", "ce", "mean_variance", "sord", "l1")},
    "StructuredEdges": lambda: StructuredEdges(trees=2, patches=300, votes=1),
    "StructuredEdges dsna": lambda: StructuredEdges(2, 200, kept=3, votes=1, dsna=True, hyperplanes=1, scales=[0.5, 1]),
    "Softmax hidden": lambda: Softmax(hidden=[16], dropout=0.1, feature_dropout=0.1),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "dsna" in name or "tuned" in name else []) for name in GOOD]
)
def test_good_heads(name: str) -> None:
    check_head(GOOD[name])


class _Linear(Head):
    """A softmax layer.

    Args:
        scale: Factor of the scores.
    """

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.layer = nn.Linear(in_features, len(labels))

    def forward(self, features: Tensor) -> Tensor:
        scores = self.layer(features)
        return torch.softmax(self.scale * scores.to(torch.promote_types(scores.dtype, torch.float32)), -1)


class _Undocumented(_Linear):
    """No word about its second argument; the first is described by the class that has it."""

    def __init__(self, scale: float = 1.0, shift: float = 0.0) -> None:
        super().__init__(scale)
        self.shift = shift


class _Forgetful(_Linear):
    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale * 2


class _OffSimplex(_Linear):
    def forward(self, features: Tensor) -> Tensor:
        return 2 * super().forward(features)


class _WrongDimension(_Linear):
    def forward(self, features: Tensor) -> Tensor:
        scores = self.layer(features).to(torch.float32)
        return torch.softmax(scores, 1)


class _Noisy(_Linear):
    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features + torch.rand_like(features))


class _Mixing(_Linear):
    def forward(self, features: Tensor) -> Tensor:
        return (
            super().forward(features - features.flatten(0, -2).mean(0))
            if features.numel()
            else super().forward(features)
        )


class _Stuck(_Linear):
    def loss(self, features: Tensor, target: Tensor, **extra: object) -> dict[str, Tensor]:
        return {"loss": self.layer.weight.sum() * 0 + 1.0}


class _Nameless(_Linear):
    def loss(self, features: Tensor, target: Tensor, **extra: object) -> dict[str, Tensor]:  # type: ignore[override]
        return {"kl": super().loss(features, target)["loss"]}


class _HiddenState(_Linear):
    def build(self, in_features: int, labels: LabelSpace) -> None:
        super().build(in_features, labels)
        self.offset = torch.randn(len(labels))

    def forward(self, features: Tensor) -> Tensor:
        scores = self.layer(features)
        return torch.softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)) + self.offset.to(features), -1)


class _Single(_Linear):
    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features).float()


class _Greedy(_Linear):
    def __init__(self, scale: float = 1.0, **more: object) -> None:
        super().__init__(scale)


class _Attached(_Linear, AlternatingHead):
    update_due = False  # type: ignore[assignment]

    def loss(self, features: Tensor, target: Tensor, **extra: object) -> dict[str, Tensor]:  # type: ignore[override]
        return {**super().loss(features, target), "memory": self(features)}

    def observe(self, memory: Tensor, target: Tensor) -> None: ...

    def update(self, collective: Collective) -> None: ...

    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        return {}

    def load_memory_state(self, state: dict[str, Tensor], collective: Collective) -> None: ...


class _Short(_Attached):
    def loss(self, features: Tensor, target: Tensor, **extra: object) -> dict[str, Tensor]:  # type: ignore[override]
        losses = super().loss(features, target)
        return {**losses, "memory": {"part": losses["memory"].detach()[1:]}}  # type: ignore[dict-item]


class _Refusing(_Linear):
    def build(self, in_features: int, labels: LabelSpace) -> None:
        from ldl.errors import LDLError

        raise LDLError("never")


BAD: dict[type[Head], str] = {
    _Undocumented: "'shift' must be described under 'Args:'",
    _Forgetful: "__init__ must only store",
    _OffSimplex: "leaves the simplex",
    _WrongDimension: "last dimension|unlike rows",
    _Noisy: "another output for the same input",
    _Mixing: "unlike rows|rows must not mix",
    _Stuck: "does not learn",
    _Nameless: "key 'loss'",
    _HiddenState: "is lost with its checkpoint: .* fit left in offset is in no buffer",
    _Single: r"after \.double\(\)",
    _Greedy: "'more' must be an ordinary argument",
    _Attached: "loss 'memory' must be detached tensors of 48 rows",
    _Short: "loss 'memory' must be detached tensors of 48 rows",
    _Refusing: "raises LDLError for every label space",
}
for _cls in BAD:
    if _cls is not _Undocumented:
        _cls.__doc__ = _Linear.__doc__


def test_the_plain_one_is_good() -> None:
    check_head(_Linear)


@pytest.mark.parametrize("head", BAD, ids=lambda cls: cls.__name__)
def test_bad_heads_are_named(head: type[Head]) -> None:
    with pytest.raises(AssertionError, match=BAD[head]) as error:
        check_head(head)
    assert str(error.value).startswith(head.__name__)
