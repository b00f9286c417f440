"""Train a head by gradient without a trainer, so that it is a fitted head and can be a member of a pool."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from ldl.batch import mixup as mix_pairs
from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError, SharedError
from ldl.head import AlternatingHead, FittedHead, Head, compute_loss
from ldl.heads.softmax import Softmax
from ldl.heads.wrappers import ScalingHead
from ldl.labels import LabelSpace
from ldl.methods.opinion_pool import Mean, pool
from ldl.methods.rows import Rows, check_weight
from ldl.methods.training_rows import check_rows
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.schedule import WarmupCosine


@options
class Trained(ScalingHead):
    """A head that learns by gradient, trained on extracted features as one fitted head, such as a member of ``Pool``.

    Training uses AdamW with a learning rate that decays to zero along half a cosine, mixup, and the leaf updates of
    alternating heads. The result depends only on ``seed`` and the rows. Processes share the ``repeats``.

    Args:
        head: The head to train, by class name; None is ``Softmax``.
        epochs: Passes over the rows.
        steps: Largest number of batches; more batches reduce the epochs. None sets no limit.
        batch_size: Rows per batch; the last batch of an epoch may be smaller.
        lr: Initial learning rate of AdamW.
        weight_decay: Decoupled weight decay of AdamW.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        scaling: Kind of scaling, fitted to the training rows; the same kinds as the option of tables.
        clip: Largest absolute value of a scaled feature; None does not clip.
        repeats: Number of heads, trained from different seeds, whose predictions are averaged.
        mean: Mean of their predictions, ``arithmetic`` or ``geometric``.
        seed: Seed of the repeats; None uses the run's seed.
    """

    uses_weight: ClassVar[bool] = True
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
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's seed")

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = Softmax()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the repeats and the buffers of the scaling. Raises LDLError for a head of another kind."""
        super().build(in_features, labels)
        if isinstance(self.head, FittedHead) or self.head.takes_bags:
            name = type(self.head).__name__
            raise LDLError(f"Trained.head {name} must take single rows and learn by gradient, as LDLF and Softmax do")
        members = []
        for number in range(self.repeats):
            with self._drawing(number):
                # Only copies are trained, so neither an optimiser nor DDP may see these parameters.
                members.append(self._make().requires_grad_(False).eval())
        self.members = nn.ModuleList(members)  # type: ignore[assignment]  # it registers what it holds
        self.build_scaling(in_features)

    def fit(self, rows: Rows, collective: Collective) -> None:
        """Train the repeats.

        Raises LDLError for a bad row, a divergent loss, or weights for a head that takes none.
        """
        check_rows(type(self).__name__, rows)
        check_weight(self.head, rows.weight)
        dtype = torch.promote_types(rows.features.dtype, torch.float32)
        self.learn_scaling(rows.features, rows.weight)
        rows = replace(rows, features=self.scaled(rows.features.to(dtype)), target=rows.target.to(dtype))
        failed = rows.target.new_zeros(())
        for number in range(collective.rank, self.repeats, collective.world_size):
            with self._drawing(number, rows.features.device):
                head = self._make().to(rows.features)
                options = self.epochs, self.batch_size, self.lr, self.weight_decay, self.mixup
                learn(head, rows, *options, self.steps, self.shows_progress)
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
        """Set the mode of this head; the repeats stay in evaluation mode."""
        super().train(mode)
        for member in self.members if self.is_built else ():
            member.eval()
        return self

    def forward(self, features: Tensor) -> Tensor:
        """Average the predictions of the repeats: (..., F) to (..., C)."""
        features = self._prepared(features)
        predictions = torch.stack([member(features) for member in self.members])
        return pool(predictions, predictions.new_full((self.repeats,), 1 / self.repeats), self.mean)

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Return the mean point estimate of the repeats, or None."""
        features = self._prepared(features)
        values = [value for member in self.members if (value := member.point_estimate(features)) is not None]
        return torch.stack(values).mean(0) if values else None

    def _prepared(self, features: Tensor) -> Tensor:
        """Scale features (..., F), in the precision of the repeats."""
        return self.scaled(features).to(next(self.members.parameters()))  # type: ignore[attr-defined]  # a ModuleList

    def _make(self) -> Head:
        head = copy.deepcopy(self.head)
        head.build(self.in_features, self.labels)
        return head

    @contextmanager
    def _drawing(self, number: int, device: torch.device | None = None) -> Iterator[None]:
        """Seed torch's generators for a repeat, and restore their states afterwards."""
        with torch.random.fork_rng([device] if device is not None and device.type == "cuda" else []):
            torch.manual_seed(hash((run_seed(self.seed), number)) % 2**63)
            yield


@torch.enable_grad()
def learn(
    head: Head,
    rows: Rows,
    epochs: int,
    batch_size: int,
    lr: float,
    weight_decay: float,
    mixup: float,
    steps: int | None = None,
    show: bool = False,
) -> None:
    """Train a built head with AdamW and cosine decay, and put it into evaluation mode.

    Every epoch is a random order of the rows, cut into batches. Randomness comes from torch's global generators.

    Args:
        head: A head that learns by gradient; an alternating head is also updated when it is due.
        rows: The training rows.
        epochs: Passes over the rows.
        batch_size: Rows per batch.
        lr: Initial learning rate.
        weight_decay: Decoupled weight decay of every parameter.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        steps: Largest number of batches, but at least one epoch; None sets no limit.
        show: Whether to draw a progress bar.
    """
    optimizer = torch.optim.AdamW(head.parameters(), lr, weight_decay=weight_decay)
    batches = math.ceil(len(rows) / batch_size)
    epochs = epochs if steps is None else max(1, min(epochs, round(steps / batches)))
    schedule = WarmupCosine(optimizer, 0.0, epochs * batches)
    rows = rows.map(Tensor.contiguous)
    head.train()
    for _ in track(range(epochs), epochs, f"training {type(head).__name__}", show):
        for numbers in torch.randperm(len(rows)).to(rows.target.device).split(batch_size):
            batch = rows[numbers]
            batch = Rows(**mix_pairs(batch.columns, mixup)) if mixup else batch
            losses = compute_loss(head, batch)
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
            schedule.step()
            if isinstance(head, AlternatingHead):
                target = batch.target
                weighted = target if batch.weight is None else target * batch.weight.to(target)[:, None]
                head.observe(losses.get("memory", batch.features), weighted)
                if head.update_due:
                    head.update(Collective())
    head.eval()
