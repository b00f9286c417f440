"""TabM (Gorishniy et al., ICLR 2025) on label distributions, by the package ``tabm`` of its authors.

TabM is a network of members that share their weights. As in the paper, the training loss is the mean of the members'
losses, and the prediction is the mean of their distributions. The loss is the cross-entropy with the whole
distribution, which has the minimum of the KL divergence. Defaults are those of the package and of its example.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ldl.protocols import with_validation

LARGEST_NORM = 1.0
"""Norm to which the example of the package clips gradients."""


@dataclass
class TabM:
    """TabM without embeddings of numbers, which keeps the epoch with the least loss on a tenth of the rows.

    Attributes:
        members: Number of members.
        width: Units of a hidden layer.
        epochs: Largest number of epochs.
        patience: Epochs without a lower validation loss after which the training stops.
        batch_size: Rows of a batch.
        learning_rate: Learning rate of AdamW.
        weight_decay: Weight decay of AdamW.
        seed: Seed of everything random.
    """

    members: int = 32
    width: int = 512
    epochs: int = 1000
    patience: int = 16
    batch_size: int = 256
    learning_rate: float = 2e-3
    weight_decay: float = 3e-4
    seed: int = 0

    def fit(self, features: np.ndarray, target: np.ndarray, group: np.ndarray | None = None) -> None:
        """Train on (N, F) and distributions (N, C); validation keeps the rows of a ``group`` (N,) together."""
        import tabm

        torch.manual_seed(self.seed)
        fold = with_validation(np.arange(len(target)), np.arange(0), 0.1, self.seed, groups=group)
        rows, truth = torch.from_numpy(features).float(), torch.from_numpy(target).float()
        train, watched = torch.from_numpy(fold.train), torch.from_numpy(fold.val)
        self.model = tabm.TabM.make(
            n_num_features=features.shape[1], d_out=target.shape[1], k=self.members, d_block=self.width
        )
        optimizer = torch.optim.AdamW(self.model.parameters(), self.learning_rate, weight_decay=self.weight_decay)
        least, best, waited = float("inf"), self.model.state_dict(), 0
        for _ in range(self.epochs):
            self.model.train()
            for batch in train[torch.randperm(len(train))].split(self.batch_size):
                scores = self.model(rows[batch]).log_softmax(-1)
                loss = -(truth[batch][:, None] * scores).sum(-1).mean()
                optimizer.zero_grad()
                loss.backward()
                torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_NORM)
                optimizer.step()
            loss_of_epoch = float(-(truth[watched] * self._distributions(rows[watched]).log()).sum(1).mean())
            waited += 1
            if loss_of_epoch < least:
                least, best, waited = loss_of_epoch, copy.deepcopy(self.model.state_dict()), 0
            if waited == self.patience:
                break
        self.model.load_state_dict(best)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """Return distributions (n, C) of features (n, F)."""
        return self._distributions(torch.from_numpy(features).float()).numpy()

    @torch.no_grad()
    def _distributions(self, rows: Tensor) -> Tensor:
        self.model.eval()
        batches = rows.split(self.batch_size)
        return torch.cat([self.model(batch).softmax(-1).mean(1) for batch in batches])
