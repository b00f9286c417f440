"""Batches: dicts of ``input``, ``target`` (B, C), ``weight`` (B,) and further columns.

The weight of a row is any positive number; a row of weight 2 counts as two rows. A weight of 0 marks padding.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from pytorch_lightning.plugins.precision import HalfPrecision, Precision
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.moved import old_names
from ldl.progress import stop
from ldl.validation.finite import DeferredChecks, raise_together

Batch = dict[str, Tensor]

INPUTS = ("input", "maps", "features")
"""Columns that may be a network's input."""
EVALUATED_ROWS = 256
"""Rows of a batch of evaluation if no number is given."""
ROWS_PER_BATCH_ROW, SMALLEST_BATCH, LARGEST_BATCH = 12, 16, 64
"""By :func:`usual_batch_size`: training rows for each row of a batch, and the smallest and the largest batch."""


accelerator_available = cache(torch.accelerator.is_available)
"""Whether there is a device besides the CPU. torch searches for drivers at every call."""


def usual_batch_size(rows: int) -> int:
    """Return the power of two nearest a twelfth of the training rows, 16 to 64: few rows need many small steps."""
    nearest = 2 ** round(math.log2(max(rows, 1) / ROWS_PER_BATCH_ROW))
    return int(min(max(nearest, SMALLEST_BATCH), LARGEST_BATCH))


def without_half(column: Tensor) -> Tensor:
    """Return 16-bit floats as float32, because numpy lacks bfloat16; return other columns unchanged."""
    return column.float() if column.dtype in (torch.bfloat16, torch.float16) else column


def convert_inputs_only(plugin: Precision) -> None:
    """Make a precision plugin convert only inputs to 16 bits; targets and values keep their dtype."""
    if not isinstance(plugin, HalfPrecision):
        return
    convert = type(plugin).convert_input

    def convert_inputs(batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, **convert(plugin, {name: batch[name] for name in INPUTS if name in batch})}

    # An entry in the instance's dict hides the method.
    vars(plugin)["convert_input"] = convert_inputs


def learned_rows(batch: Batch) -> float:
    """Return the sum of the weights of a batch, without padding; for maps, the number of pixels to keep."""
    if "keep" in batch:
        return float(batch["keep"][batch["weight"] > 0].sum())
    return float(batch["weight"].sum(dtype=torch.float64))


def with_counts(batch: dict[str, Any], train: bool) -> dict[str, Any]:
    """Add the counts that the host needs to a batch, before the batch goes to its device.

    Args:
        batch: A batch on the host, with or without these counts.
        train: Whether the model learns from the batch; then padding is removed.

    Returns:
        The batch with ``rows``, the number of its :func:`learned_rows`, ``padded``, whether it still has padding, and
        ``weighted``, whether a row has a weight other than 1. A batch of maps to learn from also gets ``kept`` (n,),
        the indices of the pixels to ``keep``. If there are none, ``kept`` has one index, and ``rows`` is 0.
    """
    if not isinstance(batch, dict):
        raise LDLError(
            f"a batch is a {type(batch).__name__}, and must be a dict of 'input' (B, ...) and 'target' (B, C), or the "
            "tuple of the two"
        )
    if "rows" in batch or "error" in batch:
        return batch
    weight = batch["weight"]
    real = weight[weight > 0]
    counts = {"rows": learned_rows(batch), "weighted": bool((real != 1).any())}
    if not train:
        return {**batch, **counts, "padded": len(real) < len(weight)}
    if "keep" in batch and counts["weighted"]:
        raise LDLError(
            "a batch has pixels to keep and row weights other than 1; give maps with pixels to keep no row weights"
        )
    batch = without_padding(batch)
    if "keep" in batch:
        kept = batch["keep"].flatten().nonzero().flatten()
        # As in without_padding: the mean loss of no pixels does not exist.
        batch = {**batch, "kept": kept if len(kept) else kept.new_zeros(1)}
    return {**batch, **counts, "padded": False}


def learned_pixels(features: Tensor, target: Tensor, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Return the features and targets to learn from: (n, F) and (n, C) for maps with pixels to keep.

    ``features`` are (B, ..., F), or (B, S, ..., F) for S outputs of maps, all of which are trained.
    """
    if "kept" not in batch:
        return features, target
    places = batch["keep"].ndim - 1
    target = target.flatten(0, places).index_select(0, batch["kept"])
    if features.ndim == places + 2:
        return features.flatten(0, places).index_select(0, batch["kept"]), target
    outputs = features.transpose(0, 1).flatten(1, places + 1).index_select(1, batch["kept"])
    return outputs.flatten(0, 1), target.repeat(len(outputs), 1)


def for_members(column: Tensor, features: Tensor) -> Tensor:
    """Return a column (B, ...) for each of k members of an ensemble, (B, k, ...), without a copy.

    ``features`` are (B, k, F), of a backbone that ``gives_members``.
    """
    return column.unsqueeze(1).expand(-1, features.shape[1], *column.shape[1:])


def global_rows(
    batch: dict[str, Any], device: torch.device, collective: Collective, watch: DeferredChecks | None = None
) -> float:
    """Return the :func:`learned_rows` of all processes together. Every process calls it for every batch.

    Raises:
        SharedError: On all processes, if a process could not read its share of the batch, or ``watch`` noted a failed
            step.
        Stopped: If a process received a signal to stop.
    """
    message: str = batch.get("error", "")
    rows = 0 if message else batch["rows"] if "rows" in batch else learned_rows(batch)
    bad = watch.first_failure() if watch else None
    total, failures, stops = collective.sum_numbers([rows, bool(message or bad), stop.signal > 0])
    if failures:
        raise_together(message or (bad.explain() if bad else ""), device, collective)
    stop.agreed = stops > 0
    if stops:
        numbers = collective.gather(torch.tensor([stop.signal], device=device))
        stop.signal = int(torch.cat(numbers).max())
        stop.leave()
    return total


def loss_scale(rows: float, total: float, world_size: int) -> float:
    """Return the factor for the mean loss of a rank with ``rows`` of ``total`` rows: DDP averages over ranks."""
    return float(rows > 0) if world_size == 1 else rows * world_size / (total or 1)


def without_padding(batch: Batch) -> Batch:
    """Remove padding. A rank without real rows keeps one row, to take part in the exchange of gradients."""
    real = batch["weight"] > 0
    if bool(real.all()):
        return batch  # not a copy: the batch may lie in pinned memory
    used = real if bool(real.any()) else torch.arange(len(real), device=real.device) == 0
    kept = {name: column[used] for name, column in batch.items()}
    return kept if used is real else {**kept, "weight": torch.ones_like(kept["weight"])}


@contextmanager
def normalised_alone(model: nn.Module, rows: int) -> Iterator[None]:
    """Use the running statistics of batch normalisation for a training batch of one row, which has no variance.

    torch raises ValueError for one value per channel. The last batch of an epoch, or the share of one process, may have
    one row. Other batches are normalised as usual.
    """
    if rows > 1:
        yield
        return

    def before(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        norm.training = inputs[0].numel() > inputs[0].shape[1]

    def after(norm: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        norm.training = True

    norms = [module for module in model.modules() if isinstance(module, _BatchNorm) and module.training]
    handles = [norm.register_forward_pre_hook(before) for norm in norms]
    handles += [norm.register_forward_hook(after, always_call=True) for norm in norms]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def seed_batch(number: int, rank: int) -> None:
    """Seed torch for batch ``number`` of the run: Lightning stores no random state to resume with."""
    seed = hash((run_seed(), number, rank)) % 2**63
    if accelerator_available():
        torch.manual_seed(seed)
    else:
        # torch.manual_seed also records the seed, with the call stack, for devices that may be initialised later.
        torch.default_generator.manual_seed(seed)


def mixup(batch: dict[str, Tensor], alpha: float) -> dict[str, Tensor]:
    """Mix every instance with a random instance of the batch (Zhang et al. 2018); the results are distributions.

    One share, drawn from Beta(alpha, alpha), holds for the whole batch; a lower ``alpha`` > 0 mixes less. Inputs,
    ``target`` and ``value`` are mixed, so that the expectation of the target remains the value. Rows of unequal
    ``weight`` keep it, and partners are drawn in proportion to it, like copies. Other columns stay unchanged.
    """
    target = batch["target"]
    share = _draw_share(alpha)
    if batch.get("weighted", "weight" in batch):
        partner = torch.multinomial(batch["weight"].float(), len(target), replacement=True)
    else:
        partner = torch.randperm(len(target), device=target.device)
    mixed: dict[str, Tensor] = {}
    for name in (*INPUTS, "target", "value"):
        if name in batch:
            column = batch[name]
            mix = share * column + (1 - share) * column[partner]
            mixed[name] = (mix if column.is_floating_point() else mix.round()).to(column.dtype)
    return {**batch, **mixed}


def _draw_share(alpha: float) -> float:
    """Draw from Beta(alpha, alpha) on the host, which does not wait for the device."""
    # torch cannot draw in 16 bits, which may be the default.
    concentration = torch.tensor(alpha, dtype=torch.promote_types(torch.get_default_dtype(), torch.float32))
    return float(torch.distributions.Beta(concentration, concentration).sample())


def run_seed(seed: int | None = None) -> int:
    """Return ``seed``, or Lightning's seed of the run from the environment, or 0."""
    return int(os.environ.get("PL_GLOBAL_SEED", 0)) if seed is None else seed


__getattr__ = old_names("ldl.batch")
