"""Competing packages that learn from the votes of each rater: scikit-activeml and crowd-kit, on given vectors.

Both need ``pip install 'ldl[peers]'``. The network below the raters is the one of ``ldl -c text``: dropout on the
vectors, a hidden layer and a softmax layer.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ldl.annotations.votes import SingleVotes

HIDDEN, DROPOUT, FEATURE_DROPOUT, BATCH, WEIGHT_DECAY = 128, 0.5, 0.4, 128, 0.1
"""The network and the batches of ``ldl -c text``."""
PAIRS_AT_ONCE = 20_000
"""Pairs of an item and a rater whose distributions are computed at a time."""


class Setting(NamedTuple):
    """Hyperparameters of training.

    Attributes:
        lr: Learning rate of AdamW.
        factor: Learning rate of the raters' parameters, as a multiple.
    """

    lr: float
    factor: float = 1.0


GRID = (Setting(3e-3), Setting(1e-3, 10), Setting(1e-3, 50))
"""Settings of which the validation votes choose one."""
MOST_EPOCHS, PATIENCE = 40, 5
"""Largest number of epochs, and the number without a better validation NLL after which training stops."""


class Votes(NamedTuple):
    """Items with their vectors (n, F), float32, and the single votes on them, of R raters for C labels."""

    features: np.ndarray
    single: SingleVotes
    labels: int

    @property
    def matrix(self) -> np.ndarray:
        """The votes as scikit-activeml takes them, (n, R), NaN where a rater did not vote."""
        matrix = np.full((len(self.features), len(self.single.names)), np.nan)
        matrix[self.single.item, self.single.rater] = self.single.label
        return matrix


class Peer(Protocol):
    """A competing package, which is trained epoch by epoch."""

    @property
    def module(self) -> nn.Module:
        """The network with the parameters of the raters."""
        ...

    def train_epoch(self) -> None:
        """Train for one epoch."""
        ...

    def predict(self, features: np.ndarray, item: np.ndarray, rater: np.ndarray) -> np.ndarray:
        """Return the distributions (V, C) of votes of ``rater`` (V,) on items of ``features`` (n, F), by ``item``."""
        ...


class Network(nn.Module):
    """The network of ``ldl -c text``, which returns logits."""

    def __init__(self, width: int, labels: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Dropout(FEATURE_DROPOUT), nn.Linear(width, HIDDEN), nn.ReLU(), nn.Dropout(DROPOUT)
        )
        self.last = nn.Linear(HIDDEN, labels)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits (n, C)."""
        logits: Tensor = self.last(self.layers(x))
        return logits


class ActiveML:
    """A classifier of scikit-activeml, ``CrowdLayerClassifier`` or ``AnnotMixClassifier``.

    Args:
        name: Name of the class.
        votes: The training items.
        setting: Learning rates of AdamW; None keeps the default of skorch, SGD with 0.01.
        seed: Seed of the weights and of the order of items.
    """

    raters = {"CrowdLayerClassifier": ["W_annot"], "AnnotMixClassifier": ["annotator_*"]}
    """Parameters of the raters, by class."""

    def __init__(self, name: str, votes: Votes, setting: Setting | None, seed: int) -> None:
        from skactiveml.classifier import multiannotator

        torch.manual_seed(seed)
        options: dict[str, Any] = {"max_epochs": 1, "verbose": 0}
        if setting is not None:
            groups = [(pattern, {"lr": setting.lr * setting.factor}) for pattern in self.raters[name]]
            options |= {"optimizer": torch.optim.AdamW, "lr": setting.lr, "optimizer__weight_decay": WEIGHT_DECAY}
            options |= {"optimizer__param_groups": groups, "batch_size": BATCH, "iterator_train__shuffle": True}
        self._votes = votes
        self._classifier = getattr(multiannotator, name)(
            clf_module=Network,
            neural_net_param_dict={**options, "module__width": votes.features.shape[1], "module__labels": votes.labels},
            classes=list(range(votes.labels)),
            random_state=seed,
        )
        self._matrix = votes.matrix

    @property
    def module(self) -> nn.Module:
        """The network of skorch."""
        module: nn.Module = self._classifier.neural_net_.module_
        return module

    def train_epoch(self) -> None:
        """Train for one epoch."""
        self._classifier.partial_fit(self._votes.features, self._matrix)

    def predict(self, features: np.ndarray, item: np.ndarray, rater: np.ndarray) -> np.ndarray:
        """Return distributions (V, C), as :meth:`Peer.predict`."""
        _, rated = self._classifier.predict_proba(features, extra_outputs="annotator_class")
        return np.asarray(rated)[item, rater]


class CoNAL:
    """The module ``CoNAL`` of crowd-kit above the network. The package has no training loop, so this is one.

    The distribution of a vote is the softmax of the module's output, which the cross-entropy of a vote trains.

    Args:
        votes: The training items.
        setting: Learning rates of AdamW.
        seed: Seed of the weights and of the order of items.
    """

    def __init__(self, votes: Votes, setting: Setting, seed: int) -> None:
        from crowdkit.learning import CoNAL as Module

        torch.manual_seed(seed)
        self._votes, self._features = votes, torch.from_numpy(votes.features)
        network = Network(votes.features.shape[1], votes.labels)
        raters = Module(votes.labels, len(votes.single.names))
        self.module = nn.ModuleDict({"network": network, "raters": raters})
        self._rated(self._features[:2], torch.tensor([0, 1]), torch.tensor([0, 0]))  # creates the lazy layer
        rates = ((network, setting.lr), (raters, setting.lr * setting.factor))
        groups = [{"params": list(module.parameters()), "lr": lr} for module, lr in rates]
        self._optimizer = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY)
        item, rater, label, names = votes.single
        order = np.argsort(item, kind="stable")
        self._single = SingleVotes(item[order], rater[order], label[order], names)

    def _rated(self, features: Tensor, item: Tensor, rater: Tensor) -> Tensor:
        logits = self.module["network"](features)
        output: Tensor = self.module["raters"](features[item], logits[item], rater)
        return output

    def train_epoch(self) -> None:
        """Train for one epoch, in batches of items with all their votes."""
        self.module.train()
        single, count = self._single, len(self._features)
        starts = np.searchsorted(single.item, np.arange(count + 1))
        for rows in torch.randperm(count).split(BATCH):
            votes = np.concatenate([np.arange(starts[row], starts[row + 1]) for row in rows.tolist()])
            item = np.repeat(np.arange(len(rows)), np.diff(starts)[rows])
            output = self._rated(self._features[rows], torch.from_numpy(item), torch.from_numpy(single.rater[votes]))
            loss = functional.cross_entropy(output, torch.from_numpy(single.label[votes]))
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()

    @torch.no_grad()
    def predict(self, features: np.ndarray, item: np.ndarray, rater: np.ndarray) -> np.ndarray:
        """Return distributions (V, C), as :meth:`Peer.predict`."""
        self.module.eval()
        output = self._rated(torch.from_numpy(features), torch.from_numpy(item), torch.from_numpy(rater))
        return output.softmax(-1).numpy()


PEERS = {
    "CrowdLayerClassifier": "scikit-activeml CrowdLayerClassifier",
    "AnnotMixClassifier": "scikit-activeml AnnotMixClassifier",
    "CoNAL": "crowd-kit CoNAL",
}
"""Titles of the competing packages."""
DEFAULT_EPOCHS = 10
"""Number of epochs by the default of skorch."""


def make_peer(name: str, votes: Votes, setting: Setting | None, seed: int) -> Peer:
    """Return an untrained peer. ``setting`` None takes the defaults of the package, which CoNAL does not have."""
    if name == "CoNAL":
        return CoNAL(votes, Setting(1e-3) if setting is None else setting, seed)
    return ActiveML(name, votes, setting, seed)


def nll_of_votes(peer: Peer, votes: Votes) -> float:
    """Return the mean negative log-likelihood of the votes, in nats."""
    single = votes.single
    rated = peer.predict(votes.features, single.item, single.rater)
    return float(-np.log(np.maximum(rated[np.arange(len(rated)), single.label], 1e-12)).mean())


class Tuned(NamedTuple):
    """A peer with the weights of its best epoch, with the validation NLL and the number of epochs."""

    peer: Peer
    nll: float
    setting: Setting
    epochs: int


def train_best_epoch(name: str, train: Votes, val: Votes, setting: Setting, seed: int) -> Tuned:
    """Train a peer, and keep the weights of the epoch with the least NLL of the validation votes."""
    peer = make_peer(name, train, setting, seed)
    best, epochs, weights = np.inf, 0, None
    for epoch in range(1, MOST_EPOCHS + 1):
        peer.train_epoch()
        if (nll := nll_of_votes(peer, val)) < best:
            best, epochs, weights = nll, epoch, copy.deepcopy(peer.module.state_dict())
        if epoch - epochs >= PATIENCE:
            break
    if weights is not None:
        peer.module.load_state_dict(weights)
    return Tuned(peer, best, setting, epochs)


def tune(name: str, train: Votes, val: Votes, seed: int, grid: Sequence[Setting] = GRID) -> Tuned:
    """Train a peer in every setting, and return the one with the least NLL of the validation votes."""
    return min((train_best_epoch(name, train, val, setting, seed) for setting in grid), key=lambda tuned: tuned.nll)


def train_defaults(name: str, train: Votes, seed: int) -> Peer:
    """Train a peer with the defaults of its package."""
    peer = make_peer(name, train, None, seed)
    for _ in range(DEFAULT_EPOCHS):
        peer.train_epoch()
    return peer


def population(peer: Peer, features: np.ndarray, raters: np.ndarray) -> np.ndarray:
    """Return the mean distribution (n, C) of some raters, given by their numbers, on each item of (n, F)."""
    rows = max(1, PAIRS_AT_ONCE // len(raters))
    blocks = []
    for start in range(0, len(features), rows):
        block = features[start : start + rows]
        item = np.repeat(np.arange(len(block)), len(raters))
        rated = peer.predict(block, item, np.tile(raters, len(block)))
        blocks.append(rated.reshape(len(block), len(raters), -1).mean(1))
    return np.concatenate(blocks)
