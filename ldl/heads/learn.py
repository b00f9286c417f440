"""Training a head by gradient without a trainer: what ``Task`` and ``LeafUpdate`` do, in one short loop."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ldl.batch import mixup as mix_pairs
from ldl.collective import Collective
from ldl.head import AlternatingHead, Head, wanted_columns
from ldl.progress import track
from ldl.schedule import WarmupCosine


@torch.enable_grad()
def learn(
    head: Head,
    columns: dict[str, Tensor],
    epochs: int,
    batch_size: int,
    lr: float,
    weight_decay: float,
    mixup: float,
    steps: int | None = None,
    show: bool = False,
) -> None:
    """Train a built head by AdamW, whose rate falls to zero along half a cosine; then put it into evaluation mode.

    Every epoch is one random order of the rows, cut into batches, of which the last may be short. All that is random
    is drawn from torch's global generators.

    Args:
        head: Learns by gradient; an alternating one is also updated when it is due.
        columns: ``features`` (N, F), ``target`` (N, C) and, where there is one, ``value`` (N, ...).
        epochs: Passes over the rows.
        batch_size: Rows of a batch.
        lr: First learning rate.
        weight_decay: Decoupled weight decay of every parameter.
        mixup: Mix pairs of rows with shares from Beta(mixup, mixup); 0 mixes none.
        steps: Fewer epochs where there would be more batches than this, but one at least; None takes all.
        show: Whether to draw a progress bar.
    """
    rows, device = len(columns["target"]), columns["target"].device
    optimizer = torch.optim.AdamW(head.parameters(), lr, weight_decay=weight_decay)
    batches = math.ceil(rows / batch_size)
    epochs = epochs if steps is None else max(1, min(epochs, round(steps / batches)))
    schedule = WarmupCosine(optimizer, 0.0, epochs * batches)
    wanted = wanted_columns(head)
    columns = {name: column.contiguous() for name, column in columns.items()}
    head.train()
    for _ in track(range(epochs), epochs, f"training {type(head).__name__}", show):
        for part in torch.randperm(rows).to(device).split(batch_size):
            batch = {name: column[part] for name, column in columns.items()}
            batch = mix_pairs(batch, mixup) if mixup else batch
            features, target = batch["features"], batch["target"]
            losses = head.loss(features, target, **{name: batch.get(name) for name in wanted})
            optimizer.zero_grad()
            losses["loss"].backward()
            optimizer.step()
            schedule.step()
            if isinstance(head, AlternatingHead):
                head.observe(losses.get("memory", features), target)
                if head.update_due:
                    head.update(Collective())
    head.eval()
