"""A batch: a dict of ``input``, ``target`` (B, C), ``weight`` (B,; 0 marks padding) and whatever else there is."""

from __future__ import annotations

import os
from typing import Any

import torch
from pytorch_lightning.plugins.precision import HalfPrecision, Precision
from torch import Tensor

from ldl.checks.watch import Watch, raise_together
from ldl.collective import Collective
from ldl.progress import stop

Batch = dict[str, Tensor]

INPUTS = ("input", "maps", "features")
"""The columns of which a network is given one."""


def keep_truth(plugin: Precision) -> None:
    """Have a plugin convert inputs alone to 16 bits, in place of all columns: targets and values keep their own."""
    if not isinstance(plugin, HalfPrecision):
        return
    convert = type(plugin).convert_input

    def convert_inputs(batch: dict[str, Any]) -> dict[str, Any]:
        return {**batch, **convert(plugin, {name: batch[name] for name in INPUTS if name in batch})}

    # In the instance's own dict, where a function hides the method.
    vars(plugin)["convert_input"] = convert_inputs


def learned_rows(batch: Batch) -> int:
    """How many rows, without padding, or of maps how many pixels to keep, a batch is learned from."""
    real = batch["weight"] > 0
    return int((batch["keep"][real] if "keep" in batch else real).sum())


def with_counts(batch: dict[str, Any], train: bool) -> dict[str, Any]:
    """A batch with what the host must know of it, to be called before the batch goes to its device.

    Args:
        batch: A batch on the host, with or without what this function adds.
        train: Whether it is learned from; then the padding goes.

    Returns:
        The batch with ``rows``, the number of its :func:`learned_rows`, with ``padded``, whether it still has padding,
        and, of a batch of maps that is learned from, with ``kept`` (n,), the numbers of the pixels to ``keep``: 1 at
        least, which counts for nothing where ``rows`` is 0.
    """
    if "rows" in batch or "error" in batch:
        return batch
    rows = learned_rows(batch)
    if not train:
        return {**batch, "rows": rows, "padded": not bool((batch["weight"] > 0).all())}
    batch = without_padding(batch)
    if "keep" in batch:
        kept = batch["keep"].flatten().nonzero().flatten()
        # As without_padding: of no pixels there is no mean loss.
        batch = {**batch, "kept": kept if len(kept) else kept.new_zeros(1)}
    return {**batch, "rows": rows, "padded": False}


def learned_pixels(features: Tensor, target: Tensor, batch: dict[str, Any]) -> tuple[Tensor, Tensor]:
    """Features and target of what a batch is learned from: (n, F) and (n, C) of maps with pixels to keep.

    ``features`` are (B, ..., F), or (B, S, ..., F) with S outputs of maps, of which each is learned from.
    """
    if "kept" not in batch:
        return features, target
    places = batch["keep"].ndim - 1
    target = target.flatten(0, places).index_select(0, batch["kept"])
    if features.ndim == places + 2:
        return features.flatten(0, places).index_select(0, batch["kept"]), target
    outputs = features.transpose(0, 1).flatten(1, places + 1).index_select(1, batch["kept"])
    return outputs.flatten(0, 1), target.repeat(len(outputs), 1)


def global_rows(batch: dict[str, Any], device: torch.device, collective: Collective, watch: Watch | None = None) -> int:
    """The :func:`learned_rows` of all processes together. Every process calls it for every batch.

    Raises SharedError, on all processes, where one of them could not read its share, or where what ``watch`` noted of
    its steps before went wrong; and Stopped, but while it trains, where one was told to end the run.
    """
    message: str = batch.get("error", "")
    rows = 0 if message else batch["rows"] if "rows" in batch else learned_rows(batch)
    bad = watch.look() if watch else None
    total, wrong, told = collective.sum_numbers([rows, bool(message or bad), stop.signal > 0])
    if wrong:
        raise_together(message or (bad.explain() if bad else ""), device, collective)
    stop.agreed = told > 0
    if told:
        numbers = collective.gather(torch.tensor([stop.signal], device=device))
        stop.signal = int(torch.cat(numbers).max())
        stop.leave()
    return total


def loss_scale(rows: int, total: int, world_size: int) -> float:
    """Factor of the mean loss of a rank with ``rows`` of ``total`` learned rows: DDP averages as if all had as many."""
    return float(rows > 0) if world_size == 1 else rows * world_size / max(1, total)


def without_padding(batch: Batch) -> Batch:
    """The real rows. A rank without any keeps one padding row, and so takes part in the exchange of gradients."""
    real = batch["weight"] > 0
    if bool(real.all()):
        return batch  # as it is, in pinned memory
    used = real if bool(real.any()) else torch.arange(len(real), device=real.device) == 0
    return {name: column[used] for name, column in batch.items()}


def seed_batch(number: int, rank: int) -> None:
    """Seed torch for batch ``number`` of the run, on a process: Lightning stores no random state to resume with."""
    seed = hash((run_seed(), number, rank)) % 2**63
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:
        # The former also notes the seed, with the call stack, for every kind of device that may yet come.
        torch.default_generator.manual_seed(seed)


def mixup(batch: dict[str, Tensor], alpha: float) -> dict[str, Tensor]:
    """Mix every instance with another one of the batch (Zhang et al. 2018): a mixture of distributions is one again.

    One share, drawn from Beta(alpha, alpha), holds for the whole batch: the lower ``alpha`` > 0, the less is mixed.
    ``input``, ``maps`` or ``features``, ``target`` and ``value`` (so the expectation of the target still is the value)
    are, the rest stays.
    """
    target = batch["target"]
    share = _draw_share(alpha)
    partner = torch.randperm(len(target), device=target.device)
    mixed: dict[str, Tensor] = {}
    for name in (*INPUTS, "target", "value"):
        if name in batch:
            column = batch[name]
            mix = share * column + (1 - share) * column[partner]
            mixed[name] = (mix if column.is_floating_point() else mix.round()).to(column.dtype)
    return {**batch, **mixed}


def _draw_share(alpha: float) -> float:
    """From Beta(alpha, alpha), on the host: a tensor would have to be waited for on its way to the device."""
    # Nothing is drawn in 16 bits, which may be the default.
    concentration = torch.tensor(alpha, dtype=torch.promote_types(torch.get_default_dtype(), torch.float32))
    if alpha >= 0.01:
        return float(torch.distributions.Beta(concentration, concentration).sample())
    # Both of the gamma variables, of which torch makes it, may be 0 even in float64; their logarithms are finite.
    uniform = torch.rand(2, dtype=torch.float64).log()
    gamma = torch.distributions.Gamma(concentration + 1, torch.ones_like(concentration)).sample((2,)).log()
    return float((uniform.diff() / alpha + gamma.diff()).sigmoid())


def run_seed(seed: int | None = None) -> int:
    """Seed of the run, as Lightning keeps it in the environment, where no ``seed`` is given; 0 where it has none."""
    return int(os.environ.get("PL_GLOBAL_SEED", 0)) if seed is None else seed
