"""Means of the training losses over an epoch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torchmetrics import Metric

from ldl.collective import Collective
from ldl.metrics.sums import Sums


class WeightedMean(Metric):
    """Mean of numbers by their weights. torchmetrics' own waits for the device at every number, and leaves out NaN."""

    full_state_update = False
    mean_value: Tensor
    weight: Tensor

    def __init__(self) -> None:
        super().__init__()
        # The default type is that of the network, which may be 16 bits.
        self.add_state("mean_value", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("weight", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, value: Tensor, weight: int) -> None:
        """Take a number."""
        self.mean_value += value.to(self.mean_value.dtype) * weight
        self.weight += weight

    def compute(self) -> Tensor:
        return self.mean_value / self.weight


class LossMeans(Sums):
    """Mean of every training loss, weighted by rows, exact over processes and over a resume in mid-epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.means = nn.ModuleDict()

    def update(self, losses: dict[str, Tensor], rows: int) -> None:
        """Take the losses of one batch, each a mean over ``rows`` rows of this process."""
        for name, value in losses.items():
            self._mean(name, value.device).update(value.detach(), rows)

    def compute(self) -> dict[str, Tensor]:
        """The means by name, over all processes. Every process calls it."""
        return {name: self._mean(name).compute() for name in self.means}

    def reset(self) -> None:
        """Begin a new epoch."""
        for name in self.means:
            self._mean(name).reset()

    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        """What each process has summed up of an unfinished epoch: weighted sum and weight, (world size, 2) a loss."""
        sums = {}
        for name in self.means:
            mean = self._mean(name)
            pair = torch.stack([torch.as_tensor(mean.mean_value), torch.as_tensor(mean.weight)])
            sums[name] = torch.cat(collective.gather(pair[None]))
        return sums

    def load_memory_state(self, state: dict[str, Tensor], collective: Collective, device: torch.device) -> None:
        """Take this process's share of :meth:`memory_state`, whatever number of processes saved it."""
        for name, sums in state.items():
            mean = self._mean(name, device)
            mine = sums[collective.rank :: collective.world_size].sum(0)
            mean.mean_value, mean.weight = mine.to(device)
            mean._update_count = int(mine[1] > 0)

    def _mean(self, name: str, device: torch.device | None = None) -> WeightedMean:
        if name not in self.means:
            self.means[name] = WeightedMean().to(device)
        mean = self.means[name]
        assert isinstance(mean, WeightedMean)
        return mean
