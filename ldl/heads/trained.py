"""A head that learns by gradient, fitted in one go: no trainer, and a member of pools."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError, SharedError
from ldl.head import FittedHead, Head
from ldl.heads.learn import learn
from ldl.heads.scaling import ScalingHead
from ldl.heads.softmax import Softmax
from ldl.labels import LabelSpace
from ldl.methods.opinion_pool import Mean, pool
from ldl.methods.rows import check_rows
from ldl.options import buffer, check_options, option, options


@options
class Trained(ScalingHead):
    """A head that learns by gradient, trained on extracted features by a loop of its own.

    What the trainer, its optimiser and its schedule do for a head on a fixed backbone, as one fitted head: AdamW, whose
    rate falls to zero along half a cosine, mixup, and the leaf updates of alternating heads. So such a head can be a
    member of ``Pool``. Its result depends on ``seed`` and the rows alone. Several processes share the ``repeats``.

    Args:
        head: The head that is trained, by class name; None is ``Softmax``.
        epochs: Passes over the rows.
        steps: Fewer epochs where the rows make more batches than this; None never does.
        batch_size: Rows of a batch; the last one of an epoch may have fewer.
        lr: First learning rate of AdamW.
        weight_decay: Its decoupled weight decay.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        scaling: How features are scaled, learnt from the rows it is fitted on: as the option of tables.
        clip: Scaled features are cut off at plus and minus this; None leaves them.
        repeats: So many heads are trained, each from a seed of its own, and their predictions averaged.
        mean: How they are: ``arithmetic`` or ``geometric``.
        seed: Seed of the repeats; None takes the run's.
    """

    uses_value: ClassVar[bool] = True
    members: list[Head] = buffer()

    head: Head = option(default=None)
    epochs: int = option(default=100, least=1)
    steps: int | None = option(default=None, least=1, null="no limit")
    batch_size: int = option(default=64, least=1)
    lr: float = option(default=3e-3, above=0)
    weight_decay: float = option(default=0.01, least=0)
    mixup: float = option(default=0.0, least=0, most=1000, what="0 for none")
    scaling: Scaling = "none"
    clip: float | None = option(default=None, above=0, null="no clipping")
    repeats: int = option(default=1, least=1, most=1000)
    mean: Mean = "arithmetic"
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's")

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = Softmax()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the repeats, untrained, and the buffers of the scaling. Raises LDLError for a head of another kind."""
        check_options(self)
        if isinstance(self.head, FittedHead) or self.head.takes_bags:
            name = type(self.head).__name__
            raise LDLError(f"Trained.head {name} must take single rows and learn by gradient, as LDLF and Softmax do")
        super().build(in_features, labels)
        members = []
        for number in range(self.repeats):
            with self._drawing(number):
                # No optimiser and no DDP may ask for their gradients: only copies are trained.
                members.append(self._make().requires_grad_(False).eval())
        self.members = nn.ModuleList(members)  # type: ignore[assignment]  # it registers what it holds
        self.learn_scaling(torch.zeros(2, in_features, device="cpu"))

    def fit(self, features: Tensor, target: Tensor, collective: Collective, value: Tensor | None = None) -> None:
        """Train on (N, F), (N, C) and maybe values (N, ...). Raises LDLError: a bad row, or a loss that grew."""
        check_rows(type(self).__name__, features, target)
        dtype = torch.promote_types(features.dtype, torch.float32)
        self.learn_scaling(features)
        columns = {"features": self.scaled(features.to(dtype)), "target": target.to(dtype)}
        columns |= {} if value is None else {"value": value}
        failed = target.new_zeros(())
        for number in range(collective.rank, self.repeats, collective.world_size):
            with self._drawing(number, features.device):
                head = self._make().to(columns["features"])
                options = self.epochs, self.batch_size, self.lr, self.weight_decay, self.mixup
                learn(head, columns, *options, self.steps, self.shows_progress)
            learned = head.state_dict()
            if all(bool(tensor.isfinite().all()) for tensor in learned.values()):
                self.members[number].load_state_dict(learned)
            else:
                failed += 1
        if collective.sum(failed) > 0:
            name = type(self.head).__name__
            raise SharedError(
                f"Trained.head {name} learned numbers that are not finite; lower Trained.lr {self.lr:g}, or scale the "
                "features"
            )
        for number, member in enumerate(self.members):
            for tensor in member.state_dict().values():
                tensor.copy_(collective.broadcast(tensor, number % collective.world_size))

    def train(self, mode: bool = True) -> Self:
        """Training mode of this head; the repeats stay in evaluation mode, for they are trained as copies."""
        super().train(mode)
        for member in self.members if self.is_built else ():
            member.eval()
        return self

    def forward(self, features: Tensor) -> Tensor:
        """Mean of the repeats: (..., F) to (..., C)."""
        features = self._prepared(features)
        predictions = torch.stack([member(features) for member in self.members])
        return pool(predictions, predictions.new_full((self.repeats,), 1 / self.repeats), self.mean)

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Mean of the repeats' better values, where the head gives such."""
        features = self._prepared(features)
        values = [value for member in self.members if (value := member.point_estimate(features)) is not None]
        return torch.stack(values).mean(0) if values else None

    def _prepared(self, features: Tensor) -> Tensor:
        """Features (..., F), scaled, in the precision of the repeats."""
        return self.scaled(features).to(next(self.members.parameters()))  # type: ignore[attr-defined]  # a ModuleList

    def _make(self) -> Head:
        head = copy.deepcopy(self.head)
        head.build(self.in_features, self.labels)
        return head

    @contextmanager
    def _drawing(self, number: int, device: torch.device | None = None) -> Iterator[None]:
        """Draw for one of the repeats, whatever torch's generators are, and leave them as they were."""
        generators, own = [torch.default_generator], []
        if device is not None and device.type == "cuda":
            generators.append(torch.cuda.default_generators[device.index])
            own.append(device)
        with torch.random.fork_rng(own):
            # torch.manual_seed would seed those of all devices.
            for generator in generators:
                generator.manual_seed(hash((run_seed(self.seed), number)) % 2**63)
            yield
