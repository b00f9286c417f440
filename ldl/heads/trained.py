"""Train a head by gradient without a trainer, so that it is a fitted head and can be a member of a pool."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from ldl.backbones.base import SHOWN_ROWS, Backbone
from ldl.batch import for_members, run_seed, usual_batch_size
from ldl.batch import mixup as mix_pairs
from ldl.collective import Collective
from ldl.data.tables.scaling import Scaling
from ldl.errors import LDLError, SharedError
from ldl.head import AlternatingHead, FittedHead, Head, compute_loss
from ldl.heads.softmax import Softmax
from ldl.heads.wrappers import ScalingHead
from ldl.labels import LabelSpace
from ldl.methods.opinion_pool import Mean, pool
from ldl.methods.rows import Rows, check_weight
from ldl.methods.torch_utils import traced
from ldl.methods.training_rows import check_rows
from ldl.metrics.functional import kl
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.schedule import WarmupCosine

PREDICTED_ROWS = 4096
"""Rows whose features a backbone returns at a time for predictions."""


@options
class Trained(ScalingHead):
    """A head that learns by gradient, trained on extracted features as one fitted head, such as a member of ``Pool``.

    Training uses AdamW with a learning rate that decays to zero along half a cosine, mixup, and the leaf updates of
    alternating heads. The result depends only on ``seed`` and the rows. Processes share the ``repeats``.

    Args:
        head: The head to train, by class name; None is ``Softmax``.
        epochs: Passes over the rows.
        steps: Largest number of batches; more batches reduce the epochs. None sets no limit.
        batch_size: Rows per batch; the last batch of an epoch may be smaller. None takes a power of two near a twelfth
            of the rows, 16 to 64.
        lr: Initial learning rate of AdamW.
        weight_decay: Decoupled weight decay of AdamW.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        scaling: Kind of scaling, fitted to the training rows; the same kinds as the option of tables.
        clip: Largest absolute value of a scaled feature; None does not clip.
        repeats: Number of heads, with their backbones, trained from different seeds, whose predictions are averaged.
        mean: Mean of their predictions, ``arithmetic`` or ``geometric``.
        seed: Seed of the repeats; None uses the run's seed.
        backbone: Network between the features and the head, such as ``Tabular``; None for no network.
        validation: Share of the rows held out to choose the epoch with the lowest KL divergence; whole groups if these
            are known. 0 learns from all rows and keeps the last epoch. None holds out a tenth if there are enough rows,
            as ``data.val_fraction`` does.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import Softmax, Trained
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(Trained(Softmax(hidden=[16]), lr=0.1)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = True
    members: list[Head] = buffer()
    backbones: list[Backbone] = buffer()

    head: Head = option(default=None)
    epochs: int = option(default=100, least=1)
    steps: int | None = option(default=None, least=1, null="no limit")
    batch_size: int | None = option(default=64, least=1, null="16 to 64, by the number of rows")
    lr: float = option(default=3e-3, above=0)
    weight_decay: float = option(default=0.01, least=0)
    mixup: float = option(default=0.0, least=0, most=1000, what="0 for none")
    scaling: Scaling = "none"
    clip: float | None = option(default=None, above=0, null="no clipping")
    repeats: int = option(default=1, least=1, most=1000)
    mean: Mean = "arithmetic"
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's seed")
    backbone: Backbone = option(default=None)
    validation: float | None = option(default=0.0, least=0, below=1, null="a tenth if there are enough rows")

    def __post_init__(self) -> None:
        if self.head is None:
            self.head = Softmax()

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the repeats and the buffers of the scaling. Raises LDLError for a head of another kind."""
        super().build(in_features, labels)
        if isinstance(self.head, FittedHead) or self.head.takes_bags:
            name = type(self.head).__name__
            raise LDLError(f"Trained.head {name} must take single rows and learn by gradient, as LDLF and Softmax do")
        networks = []
        for number in range(self.repeats):
            with self._drawing(number):
                # Only copies are trained, so neither an optimiser nor DDP may see these parameters.
                networks.append(self._make().requires_grad_(False).eval())
        self.members = nn.ModuleList(network.head for network in networks)  # type: ignore[assignment]  # it registers
        if self.backbone is not None:
            self.backbones = nn.ModuleList(network.backbone for network in networks)  # type: ignore[assignment,misc]
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
        train, validation = self._hold_out(rows)
        failed = rows.target.new_zeros(())
        for number in range(self.repeats):
            with self._drawing(number, rows.features.device):
                # Every process makes every network, because the shapes of a backbone may depend on the rows.
                network = self._make(train.features).to(rows.features)
                if number % collective.world_size == collective.rank:
                    learn(network, train, validation, self)
            if all(bool(tensor.isfinite().all()) for tensor in network.state_dict().values()):
                self._keep(number, network)
            else:
                failed += 1
        if collective.sum(failed) > 0:
            name = type(self.head).__name__
            raise SharedError(
                f"Trained.head {name} learned numbers that are not finite; lower Trained.lr {self.lr:g}, or scale the "
                "features"
            )
        for number, network in enumerate(self._networks):
            for tensor in network.state_dict().values():
                tensor.copy_(collective.broadcast(tensor, number % collective.world_size))

    def train(self, mode: bool = True) -> Self:
        """Set the mode of this head; the repeats stay in evaluation mode."""
        super().train(mode)
        for network in self._networks if self.is_built else ():
            network.eval()
        return self

    def forward(self, features: Tensor) -> Tensor:
        """Average the predictions of the repeats: (..., F) to (..., C)."""
        features = self._prepared(features)
        predictions = torch.stack([network(features) for network in self._networks])
        return pool(predictions, predictions.new_full((self.repeats,), 1 / self.repeats), self.mean)

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Return the mean point estimate of the repeats, or None."""
        features = self._prepared(features)
        values = [value for each in self._networks if (value := each.point_estimate(features)) is not None]
        return torch.stack(values).mean(0) if values else None

    @property
    def _networks(self) -> list[Network]:
        backbones = [None] * self.repeats if self.backbone is None else self.backbones
        return [Network(head, backbone) for head, backbone in zip(self.members, backbones)]

    def _prepared(self, features: Tensor) -> Tensor:
        """Scale features (..., F), in the precision of the repeats."""
        return self.scaled(features).to(next(self.members.parameters()))  # type: ignore[attr-defined]  # a ModuleList

    def _hold_out(self, rows: Rows) -> tuple[Rows, Rows | None]:
        """Return the rows to learn from, and those that choose the epoch."""
        if self.validation == 0:
            return rows, None
        train, validation = rows.hold_out(self.validation, run_seed(self.seed))
        device = rows.target.device
        held_out = rows[torch.from_numpy(validation).to(device)] if len(validation) else None
        return rows[torch.from_numpy(train).to(device)], held_out

    def _make(self, features: Tensor | None = None) -> Network:
        """Build a network, whose backbone learns from the features (N, F) of training rows, if they are there."""
        head, backbone, width = copy.deepcopy(self.head), copy.deepcopy(self.backbone), self.in_features
        if backbone is not None:
            width = backbone.build((width,))
            if features is not None and backbone.learns_inputs:
                backbone.learn_inputs(features[torch.randperm(len(features))[:SHOWN_ROWS]].float().cpu())
        head.build(width, self.labels)
        return Network(head, backbone)

    def _keep(self, number: int, network: Network) -> None:
        """Take over the numbers of a trained network, in the precision of this head."""
        self.members[number].load_state_dict(network.head.state_dict())
        if network.backbone is not None:
            kept = next(self.members[number].parameters())
            self.backbones[number] = network.backbone.to(kept).requires_grad_(False).eval()

    @contextmanager
    def _drawing(self, number: int, device: torch.device | None = None) -> Iterator[None]:
        """Seed torch's generators for a repeat, and restore their states afterwards."""
        with torch.random.fork_rng([device] if device is not None and device.type == "cuda" else []):
            torch.manual_seed(hash((run_seed(self.seed), number)) % 2**63)
            yield


class Network(nn.Module):
    """A head behind a backbone, or behind none.

    Args:
        head: A built head that learns by gradient.
        backbone: A built backbone that takes rows of features, or None.
    """

    def __init__(self, head: Head, backbone: Backbone | None) -> None:
        super().__init__()
        self.head, self.backbone = head, backbone

    def features(self, features: Tensor) -> Tensor:
        """Return what the head gets for features (N, F): (N, H), or (N, k, H) for k members."""
        return features if self.backbone is None else self.backbone(features)

    def forward(self, features: Tensor) -> Tensor:
        """Return distributions (..., C) of features (..., F)."""
        distributions = self._of_head(self.head, features)
        assert distributions is not None
        return distributions

    def point_estimate(self, features: Tensor) -> Tensor | None:
        """Return the point estimates (...) of the head for features (..., F), or None."""
        return self._of_head(self.head.point_estimate, features)

    def _of_head(self, function: Callable[[Tensor], Tensor | None], features: Tensor) -> Tensor | None:
        """Return a function of the head's features, averaged over members; without a backbone in one piece."""
        if self.backbone is None:
            return function(features)
        rows = features.reshape(-1, features.shape[-1])
        parts = [function(self.backbone(part)) for part in ([rows] if traced() else rows.split(PREDICTED_ROWS))]
        results = [part.mean(1) if self.backbone.gives_members else part for part in parts if part is not None]
        return torch.cat(results).reshape(*features.shape[:-1], *results[0].shape[1:]) if results else None


@torch.enable_grad()
def learn(network: Network, rows: Rows, validation: Rows | None, options: Trained) -> None:
    """Train a built network with AdamW and cosine decay, and put it into evaluation mode.

    Every epoch is a random order of the rows, cut into batches. Randomness comes from torch's global generators.

    Args:
        network: The network; if its head is an alternating head, the head is also updated when it is due.
        rows: The rows to learn from.
        validation: Rows whose KL divergence chooses the epoch; None keeps the last epoch.
        options: The head with the hyperparameters. ``steps`` limits the batches, but never to less than an epoch.
    """
    optimizer = torch.optim.AdamW(network.parameters(), options.lr, weight_decay=options.weight_decay)
    batch_size = options.batch_size or usual_batch_size(len(rows))
    batches, epochs = math.ceil(len(rows) / batch_size), options.epochs
    if options.steps is not None:
        epochs = max(1, min(epochs, round(options.steps / batches)))
    schedule = WarmupCosine(optimizer, 0.0, epochs * batches)
    rows, head = rows.map(Tensor.contiguous), network.head
    best: dict[str, Tensor] = {}
    best_kl = math.inf
    for _ in track(range(epochs), epochs, f"training {type(head).__name__}", options.shows_progress):
        network.train()
        for numbers in torch.randperm(len(rows)).to(rows.target.device).split(batch_size):
            batch = rows[numbers]
            batch = Rows(**mix_pairs(batch.columns, options.mixup)) if options.mixup else batch
            losses, target = _losses(network, batch)
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
            schedule.step()
            if isinstance(head, AlternatingHead):
                head.observe(losses["memory"], target)
                if head.update_due:
                    head.update(Collective())
        network.eval()
        if validation is not None:
            with torch.no_grad():
                mean_kl = float(kl(network(validation.features), validation.target).double() @ validation.share)
            if mean_kl < best_kl:
                best_kl = mean_kl
                best = {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}
    if best:
        network.load_state_dict(best)


def _losses(network: Network, batch: Rows) -> tuple[dict[str, Tensor], Tensor]:
    """Return the losses of a batch, with ``memory`` for an alternating head, and its weighted target."""
    features, target, value = network.features(batch.features), batch.target, batch.value
    if network.backbone is not None and network.backbone.gives_members:
        target = for_members(target, features)
        value = None if value is None else for_members(value, features)
    losses = compute_loss(network.head, Rows(features, target, value, batch.weight))
    weight = batch.weight
    weighted = target if weight is None else target * weight.to(target).reshape(-1, *[1] * (target.ndim - 1))
    return {"memory": features.detach(), **losses}, weighted
