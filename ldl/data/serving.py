"""What a data module's loaders serve: inputs, features or kept views, dealt to the processes."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np
from torch.utils.data import Dataset

from ldl.batch import run_seed
from ldl.collective import current_collective
from ldl.data.balance import draw
from ldl.data.instances import Guarded, Instances, collate
from ldl.data.loader import ResumableLoader, start_worker, worker_context
from ldl.data.sampler import DealtBatchSampler
from ldl.errors import LDLError


def serve(data: Any, rows: np.ndarray, train: bool, persistent: bool = False) -> ResumableLoader:
    """Batches of the instances ``rows`` of an ``LDLDataModule``, to ``train`` on in random order. Raises LDLError."""
    collective = current_collective()
    connector = getattr(data.trainer, "_accelerator_connector", None)
    if collective.world_size > 1 and getattr(connector, "use_distributed_sampler", False):
        raise LDLError(
            "Trainer(use_distributed_sampler=True) would cut the dealt batches a second time; "
            "pass use_distributed_sampler=False, as the command line does"
        )
    sampler = DealtBatchSampler(
        len(rows),
        data.batch_size if train else data.eval_batch_size,
        shuffle=train,
        seed=run_seed(),
        rank=collective.rank,
        world_size=collective.world_size,
        position=partial(_position, data),
        often=data.often() if train else None,
    )
    seeded = bool(int(os.environ.get("PL_SEED_WORKERS", 0)))
    return ResumableLoader(
        Guarded(_served(data, rows, train)),
        batch_sampler=sampler,
        num_workers=data.num_workers,
        collate_fn=collate,
        prefetch_factor=data.prefetch if data.num_workers else None,
        persistent_workers=data.num_workers > 0 and persistent,
        multiprocessing_context=worker_context() if data.num_workers else None,
        worker_init_fn=partial(start_worker, rank=collective.rank, seeded=seeded) if data.num_workers else None,
        pin_memory=data.trainer is not None and data.trainer.strategy.root_device.type == "cuda",
    )


def drawn_once(data: Any) -> np.ndarray:
    """The training part in order, with rows more than once and others not at all where the data balance labels."""
    rows, often = data.split.train, data.often()
    return rows if often is None else rows[np.sort(draw(often, np.random.default_rng(run_seed())))]


def _served(data: Any, rows: np.ndarray, train: bool) -> Dataset[Any]:
    if data.backbone_features is not None:
        return Instances({**data.columns, "features": data.backbone_features}, rows)
    return data.dataset(rows, train) if data.views is None else Instances(data.columns, rows, data.views, train)


def _position(data: Any) -> tuple[int, int]:
    """The epoch to train and how many of its batches are done, also while a checkpoint is being resumed."""
    if data.trainer is None:
        return 0, 0
    begun = data.trainer.fit_loop.epoch_progress.current.ready
    batches = data.trainer.fit_loop.epoch_loop.batch_progress
    return (begun, 0) if batches.is_last_batch else (max(0, begun - 1), batches.current.processed)
