"""Label distribution learning forests (Shen, Zhao, Guo & Yuille, NIPS 2017)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ldl import charts
from ldl.collective import Collective, interleave
from ldl.errors import LDLError
from ldl.head import AlternatingHead
from ldl.heads.mlp import mlp
from ldl.labels import LabelSpace
from ldl.methods.forest.soft import mix, route, update_leaves
from ldl.metrics.functional import kl


class LDLF(AlternatingHead):
    """Label distribution learning forest: differentiable trees whose leaves hold label distributions.

    Split nodes learn by gradient; every ``batches`` batches the leaves are solved on the samples of the last
    ``batches`` batches by ``iterations`` fixed-point steps (Shen et al. 2017, Algorithm 1). The loss is the
    mean of the trees' losses, the prediction the mean of the trees' outputs. The defaults are the paper's.
    Leaves start uniform, which gives the split nodes no gradient: learning begins with the first leaf update.

    Args:
        trees: Number of trees K.
        depth: Depth h of a tree, counting the leaves: 2^(h-1) leaves, 2^(h-1) - 1 split nodes.
        outputs: Units M of the split function; each tree draws its split nodes from them without
            replacement, so M >= 2^(h-1) - 1. None gives every split node a unit of its own.
        iterations: Fixed-point steps of one leaf update.
        batches: Batches n_B that the ring of samples holds, and between two leaf updates.
        buffer_rows: At most this many rows are kept in the ring of each process, a random share of every batch; None
            keeps all (a map of pixels needs a bound).
        routing: ``step`` keeps each sample's routing of its own gradient step, as the authors' code does;
            ``current`` keeps the features and routes them again, without dropout, when the leaves are updated.
        hidden: Widths of hidden ReLU layers before the split units; empty is the paper's linear layer.
        dropout: Dropout after each hidden layer.
        feature_dropout: Dropout on the features.
        tree_dropout: Probability that a sample leaves a tree out of its training loss.
        ensemble: ``joint`` trains all trees on every batch (the paper's); ``alternating`` one random tree a
            batch, without shared units (dNDF, Kontschieder et al. 2015); ``outputs`` must be None for it.
        anneal: Split decisions sharpen by this factor over training: sigmoid(f) becomes sigmoid(anneal * f).
        anneal_steps: Training steps over which they do, linearly.
        leaf_smoothing: Pseudo-samples with the mean target in every leaf (see ``update_leaves``).
        leaf_floor: Smallest probability in a leaf, so that labels absent from the ring can come back.
    """

    split: nn.Sequential
    units: Tensor
    leaves: Tensor
    steps: Tensor

    def __init__(
        self,
        trees: int = 5,
        depth: int = 7,
        outputs: int | None = 64,
        iterations: int = 20,
        batches: int = 100,
        buffer_rows: int | None = None,
        routing: Literal["step", "current"] = "step",
        hidden: Sequence[int] = (),
        dropout: float = 0.0,
        feature_dropout: float = 0.0,
        tree_dropout: float = 0.0,
        ensemble: Literal["joint", "alternating"] = "joint",
        anneal: float = 1.0,
        anneal_steps: int = 1000,
        leaf_smoothing: float = 0.0,
        leaf_floor: float = 1e-8,
    ) -> None:
        super().__init__()
        self.trees = trees
        self.depth = depth
        self.outputs = outputs
        self.iterations = iterations
        self.batches = batches
        self.buffer_rows = buffer_rows
        self.routing = routing
        self.hidden = hidden
        self.dropout = dropout
        self.feature_dropout = feature_dropout
        self.tree_dropout = tree_dropout
        self.ensemble = ensemble
        self.anneal = anneal
        self.anneal_steps = anneal_steps
        self.leaf_smoothing = leaf_smoothing
        self.leaf_floor = leaf_floor
        self._ring: deque[tuple[Tensor, Tensor]] = deque()
        self._observed = 0
        self._step_routing: Tensor | None = None

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the split layer, the choice of units phi and uniform leaves (K, L, C). Raises LDLError."""
        self._check_arguments(len(labels))
        super().build(in_features, labels)
        leaves = 2 ** (self.depth - 1)
        nodes = leaves - 1
        if self.outputs is None:
            units = torch.arange(self.trees * nodes).reshape(self.trees, nodes)
        else:
            units = torch.stack([torch.randperm(self.outputs)[:nodes] for _ in range(self.trees)])
        outputs = self.outputs or self.trees * nodes
        self.split = mlp(in_features, self.hidden, outputs, self.dropout, self.feature_dropout)
        self.register_buffer("units", units)
        self.register_buffer("leaves", torch.full((self.trees, leaves, len(labels)), 1 / len(labels)))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self._ring = deque(maxlen=self.batches)

    def route(self, features: Tensor) -> Tensor:
        """Routing probabilities (..., K, L) of features (..., F), at least float32 also under autocast."""
        scores = self.split(features)
        with torch.autocast(features.device.type, enabled=False):
            scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
            # One index_select over the flat units is much faster, its backward too, than an index per tree.
            nodes = scores.index_select(-1, self.units.flatten()).unflatten(-1, self.units.shape)
            if self.anneal != 1:
                nodes = nodes * self._sharpness()
            return route(torch.sigmoid(nodes))

    def forward(self, features: Tensor) -> Tensor:
        """Mean of the trees' outputs: (..., F) to (..., C)."""
        return self._mix(self.route(features)).mean(-2)

    def loss(self, features: Tensor, target: Tensor, **extra: Any) -> dict[str, Tensor]:
        """Mean over samples and trees of each tree's KL divergence from ``target`` (..., C)."""
        if self.training:
            self.steps += 1
        routing = self.route(features)
        self._step_routing = routing.detach() if self.training else None
        losses = kl(self._mix(routing), target.to(routing).unsqueeze(-2))
        if self.training and self.ensemble == "alternating":
            return {"loss": losses[..., self._tree_of_step()].mean()}
        if self.training and self.tree_dropout:
            kept = torch.rand_like(losses) >= self.tree_dropout
            return {"loss": (losses * kept).sum() / kept.sum().clamp_min(1)}
        return {"loss": losses.mean()}

    @torch.no_grad()
    def observe(self, features: Tensor, target: Tensor) -> None:
        """Put one batch, (..., F) and (..., C), into the ring."""
        target = target.flatten(0, -2)
        rows: slice | Tensor = slice(None)
        if self.buffer_rows is not None and len(target) > (limit := self.buffer_rows // self.batches):
            rows = torch.randperm(len(target), device=target.device)[:limit]
        if self.routing == "current":
            kept = features.flatten(0, -2)[rows]
        else:
            routing = self._step_routing
            if routing is None or routing.shape[:-2] != features.shape[:-1]:
                routing = self.route(features)
            kept = routing.flatten(0, -3)[rows]
        self._step_routing = None
        self._ring.append((kept.detach().clone(), target[rows].detach().clone()))
        self._observed += 1

    @property
    def update_due(self) -> bool:
        """Whether ``batches`` batches went by since the last update."""
        return self._observed >= self.batches

    @torch.no_grad()
    def update(self, collective: Collective) -> None:
        """Solve the leaves on the ring of all ranks (Algorithm 1, line 8)."""
        kept = torch.cat([kept for kept, _ in self._ring])
        target = torch.cat([target for _, target in self._ring])
        if self.routing == "current":
            training = self.training
            self.eval()
            kept = self.route(kept)
            self.train(training)
        leaves = update_leaves(
            kept, target, self.leaves, self.iterations, collective, self.leaf_smoothing, self.leaf_floor
        )
        self.leaves.copy_(leaves)
        self._observed = 0

    @torch.no_grad()
    def charts(self, folder: Path, batch: dict[str, Tensor]) -> dict[str, Path]:
        """The leaves of the first tree, with the share of the batch that each holds."""
        usage = self.route(batch["features"]).flatten(0, -3)[:, 0].mean(0)
        leaves = self.leaves[0].float().cpu().numpy()
        return {"leaves": charts.leaves(folder / "leaves.png", leaves, self.labels, usage.float().cpu().numpy())}

    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        """The ring of all ranks: rows of each batch in their global order, and how many each batch has."""
        batches = [[interleave(collective.gather(part)) for part in batch] for batch in self._ring]
        state = {"observed": torch.tensor(self._observed), "rows": torch.tensor([len(kept) for kept, _ in batches])}
        if batches:
            state["kept"] = torch.cat([kept for kept, _ in batches])
            state["target"] = torch.cat([target for _, target in batches])
        return state

    def load_memory_state(self, state: dict[str, Tensor], collective: Collective) -> None:
        """Deal the saved ring back to the ranks."""
        self._observed = int(state["observed"])
        self._ring.clear()
        rows = state["rows"].tolist()
        if not rows:
            return
        device = self.leaves.device
        mine = slice(collective.rank, None, collective.world_size)
        for kept, target in zip(state["kept"].split(rows), state["target"].split(rows)):
            self._ring.append((kept[mine].to(device), target[mine].to(device)))

    def _mix(self, routing: Tensor) -> Tensor:
        with torch.autocast(routing.device.type, enabled=False):
            return mix(routing, self.leaves.to(routing.dtype))

    def _sharpness(self) -> Tensor:
        return 1 + (self.anneal - 1) * (self.steps / self.anneal_steps).clamp_max(1)

    def _tree_of_step(self) -> int:
        # Drawn from the step alone, so that all ranks train the same tree.
        return int(torch.randint(self.trees, (), generator=torch.Generator().manual_seed(int(self.steps))))

    def _check_arguments(self, labels: int) -> None:
        for name in ("trees", "iterations", "batches", "anneal_steps"):
            if getattr(self, name) < 1:
                raise LDLError(f"LDLF {name} {getattr(self, name)!r} must be at least 1")
        if not 2 <= self.depth <= 16:
            raise LDLError(f"LDLF depth {self.depth!r} must be in 2..16 (2^(depth-1) leaves a tree)")
        nodes = 2 ** (self.depth - 1) - 1
        if self.outputs is not None and self.outputs < nodes:
            raise LDLError(
                f"LDLF outputs {self.outputs} is less than the {nodes} split nodes of a tree of depth {self.depth}; "
                f"give at least {nodes}, or null for a unit per node"
            )
        if self.ensemble == "alternating" and self.outputs is not None:
            raise LDLError("LDLF ensemble 'alternating' shares no units between trees; set outputs: null")
        if self.ensemble not in ("joint", "alternating"):
            raise LDLError(f"LDLF ensemble {self.ensemble!r} must be 'joint' or 'alternating'")
        if self.routing not in ("step", "current"):
            raise LDLError(f"LDLF routing {self.routing!r} must be 'step' or 'current'")
        if self.anneal <= 0:
            raise LDLError(f"LDLF anneal {self.anneal!r} must be positive")
        if self.leaf_smoothing < 0:
            raise LDLError(f"LDLF leaf_smoothing {self.leaf_smoothing!r} must not be negative")
        if not 0 <= self.leaf_floor < 1 / labels:
            raise LDLError(f"LDLF leaf_floor {self.leaf_floor!r} must be in [0, 1/{labels}) for {labels} labels")
        if not 0 <= self.tree_dropout < 1:
            raise LDLError(f"LDLF tree_dropout {self.tree_dropout!r} must be in [0, 1)")
        if self.tree_dropout and self.ensemble == "alternating":
            raise LDLError("LDLF ensemble 'alternating' trains one tree a batch; set tree_dropout: 0")
        if self.buffer_rows is not None and self.buffer_rows < self.batches:
            raise LDLError(f"LDLF buffer_rows {self.buffer_rows} must be at least batches, {self.batches}")
