"""Label distribution learning forests (Shen, Zhao, Guo & Yuille, NIPS 2017)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from pytorch_lightning.utilities import rank_zero_warn
from torch import Tensor, nn
from typing_extensions import override

from ldl import charts
from ldl.collective import Collective, interleave
from ldl.errors import LDLError
from ldl.head import AlternatingHead
from ldl.heads.mlp import mlp
from ldl.labels import KL_FLOOR, LabelSpace
from ldl.methods.evidence import Evidence, weigh
from ldl.methods.forest.soft import mix, route, update_leaves
from ldl.metrics.functional import kl, mean_of
from ldl.options import buffer, option, options
from ldl.validation.tensors import check_range, refuse

PAPERS_BATCHES = 100


@options
class LDLF(AlternatingHead):
    """Label distribution learning forest: differentiable trees whose leaves hold label distributions.

    Split nodes learn by gradient; every ``batches`` batches the leaves are solved on the samples of the last
    ``batches`` batches by ``iterations`` fixed-point steps (Shen et al. 2017, Algorithm 1). The loss is the
    mean of the trees' losses (but see ``objective``), the prediction the mean of their outputs. The defaults are
    the paper's, except ``batches`` on small sets and ``leaf_floor``, which the paper does not state.
    Leaves start uniform, which gives the split nodes no gradient, so learning begins with the first leaf update.

    Args:
        trees: Number of trees K.
        depth: Depth h of a tree, counting the leaves: 2^(h-1) leaves, 2^(h-1) - 1 split nodes.
        outputs: Units M of the split function; each tree draws its split nodes from them without
            replacement, so M >= 2^(h-1) - 1. None gives every split node its own unit.
        iterations: Fixed-point steps of one leaf update.
        batches: Number of batches n_B in the replay buffer, and between two leaf updates. None takes the batches of an
            epoch, at most the paper's 100. If a run has fewer than n_B, leaves are updated after every epoch.
        buffer_rows: Largest number of rows in the replay buffer of each process, a random share of every batch; None
            keeps all. Maps of pixels need a bound.
        routing: ``step`` keeps each sample's routing of its own gradient step, as the authors' code does;
            ``current`` keeps the features and routes them again, without dropout, when the leaves are updated.
        hidden: Widths of hidden ReLU layers before the split units; empty is the paper's linear layer.
        dropout: Dropout after each hidden layer.
        feature_dropout: Dropout on the features.
        tree_dropout: Probability that a tree is left out of the training loss of a sample.
        objective: Objective of loss and leaf update. ``trees`` (the paper's) is the mean of the trees' losses.
            ``forest`` is the loss of the mean output, which the forest predicts: a mixture of all leaves.
        ensemble: ``joint`` trains all trees on every batch (the paper's); ``alternating`` one random tree a
            batch, without shared units (dNDF, Kontschieder et al. 2015); ``outputs`` must be None for it.
        anneal: Split decisions sharpen by this factor over training: sigmoid(f) becomes sigmoid(anneal * f).
        anneal_steps: Training steps over which they do, linearly.
        leaf_smoothing: Pseudo-samples with the mean target in every leaf (see ``update_leaves``).
        leaf_floor: Smallest probability in a leaf before normalisation, so that labels absent from the replay buffer
            can return.
        members: Number of members of an ensemble inside the network, which divides ``trees``; 1 is no ensemble. Members
            share the hidden layers, except an adapter of the features (``ldl.heads.mlp``). With ``outputs`` every
            member has its own M units.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import LDLF
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(LDLF(trees=3, depth=4), lr=0.1, epochs=30).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = True
    float32_buffers: ClassVar[tuple[str, ...]] = ("leaves",)
    split: nn.Sequential = buffer()
    units: Tensor = buffer()
    leaves: Tensor = buffer()
    steps: Tensor = buffer()

    trees: int = option(default=5, least=1, most=10_000)
    depth: int = option(default=7, least=2, most=16, what="2^(depth-1) leaves a tree")
    outputs: int | None = option(default=64, least=1, most=2**20, null="a unit per node")
    iterations: int = option(default=20, least=1)
    batches: int | None = option(default=None, least=1, most=100_000, null="those of an epoch, at most 100")
    buffer_rows: int | None = option(default=None, least=1, null="all rows")
    routing: Literal["step", "current"] = "step"
    hidden: Sequence[int] = option(default=(), least=1, most=2**16)
    dropout: float = option(default=0.0, least=0, below=1)
    feature_dropout: float = option(default=0.0, least=0, below=1)
    tree_dropout: float = option(default=0.0, least=0, below=1)
    objective: Literal["trees", "forest"] = "trees"
    ensemble: Literal["joint", "alternating"] = "joint"
    anneal: float = option(default=1.0, above=0)
    anneal_steps: int = option(default=1000, least=1)
    leaf_smoothing: float = option(default=0.0, least=0)
    leaf_floor: float = option(default=1e-8, least=0)
    members: int = option(default=1, least=1, most=1024)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the split layer, the choice of units phi and uniform leaves (K, L, C). Raises LDLError."""
        super().build(in_features, labels)
        self._check_together()
        leaves = 2 ** (self.depth - 1)
        nodes = leaves - 1
        if self.outputs is None:
            units = torch.arange(self.trees * nodes).reshape(self.trees, nodes)
        else:
            units = torch.stack([torch.randperm(self.outputs)[:nodes] for _ in range(self.trees)])
            units += self.outputs * (torch.arange(self.trees) * self.members // self.trees)[:, None]
        outputs = self.outputs or self.trees * nodes // self.members
        self.split = mlp(in_features, self.hidden, outputs, self.dropout, self.feature_dropout, self.members)
        self.register_buffer("units", units)
        self.register_buffer("leaves", torch.full((self.trees, leaves, len(labels)), 1 / len(labels)))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self._every = self.batches or PAPERS_BATCHES
        self._ring: deque[tuple[Tensor, Tensor]] = deque(maxlen=self._every)
        self._observed = 0
        self._step = 0

    @override
    def describe_buffers(self) -> dict[str, str]:
        units = self.members * self.outputs if self.outputs else self.units.numel()
        return {"units": f"...: 0 <= number < {units}", "leaves": "...: distributions"}

    def check_state(self) -> None:
        """Raise LDLError if split nodes name unknown units, or leaves hold no distributions."""
        super().check_state()
        self._step = int(self.steps)

    def route(self, features: Tensor) -> Tensor:
        """Return routing probabilities (..., K, L) of features (..., F), at least float32 also under autocast."""
        scores = self.split(features)
        if self.members > 1:
            scores = scores.flatten(-2)
        with torch.autocast(features.device.type, enabled=False):
            scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
            # One index_select over the flat units is much faster than an index per tree, also backward. It runs node by
            # node, so that samples come last in memory, as in routing.
            units = self.units.t()
            by_unit = scores.reshape(-1, scores.shape[-1]).t()
            nodes = by_unit.index_select(0, units.flatten()).unflatten(0, units.shape).permute(2, 1, 0)
            if self.anneal != 1:
                nodes = nodes * (1 + (self.anneal - 1) * (self.steps / self.anneal_steps).clamp_max(1))
            return route(torch.sigmoid(nodes)).reshape(*scores.shape[:-1], *self.leaves.shape[:2])

    def forward(self, features: Tensor) -> Tensor:
        """Average the trees' outputs: (..., F) to (..., C)."""
        return self._outputs(features)[1].mean(-2)

    def loss(self, features: Tensor, target: Tensor, weight: Tensor | None = None, **extra: Any) -> dict[str, Tensor]:
        """Return the mean KL divergence of the trees, or of the forest, from ``target`` (..., C).

        With ``routing: step`` the entry ``memory`` is the routing (..., K, L).
        """
        if self.training:
            self.steps += 1
        routing, outputs = self._outputs(features)
        losses = kl(outputs, target.to(routing).unsqueeze(-2))
        if self.training and self.ensemble == "alternating":
            loss = mean_of(losses[..., self._draw_tree()], weight)
        elif self.training and self.tree_dropout:
            kept = torch.rand_like(losses) >= self.tree_dropout
            kept = kept if weight is None else kept * weight.to(losses).reshape(-1, *[1] * (losses.ndim - 1))
            loss = (losses * kept).sum() / torch.where(kept.sum() > 0, kept.sum(), 1)
        else:
            loss = mean_of(losses, weight)
        return {"loss": loss, **({"memory": routing.detach()} if self.routing == "step" else {})}

    def log_outputs(self, features: Tensor) -> dict[str, Tensor]:
        """Return the logarithms of the trees' outputs, or of the forest's, as ``log_p`` (..., T, C), and ``memory``.

        Raises:
            LDLError: ``tree_dropout``, which would leave out losses of trees.
        """
        if self.tree_dropout:
            raise LDLError(
                f"LDLF.tree_dropout {self.tree_dropout!r} leaves out losses of trees, and a model of raters has "
                "losses of votes; set it to 0, or model.raters none"
            )
        if self.training:
            self.steps += 1
        routing, outputs = self._outputs(features)
        if self.training and self.ensemble == "alternating":
            outputs = outputs[..., [self._draw_tree()], :]
        memory = {"memory": routing.detach()} if self.routing == "step" else {}
        return {"log_p": outputs.clamp_min(KL_FLOOR).log(), **memory}

    @torch.no_grad()
    def observe(self, memory: Tensor, target: Tensor) -> None:
        """Add a batch, routing (..., K, L) or features (..., F), and weighted (..., C), to the replay buffer."""
        memory, target = memory.flatten(0, target.ndim - 2), target.flatten(0, -2)
        rows: slice | Tensor = slice(None)
        if self.buffer_rows is not None and len(target) > (limit := self.buffer_rows // self._every):
            rows = torch.randperm(len(target), device=target.device)[:limit]
        self._ring.append((memory[rows].clone(), target[rows].clone()))
        self._observed += 1

    @property
    def update_due(self) -> bool:
        """Whether ``batches`` batches were observed since the last update."""
        return self._observed >= self._every

    def expect(self, epoch: float, run: float) -> None:
        """Reduce ``batches`` to the length of the run, so that leaves are updated at all."""
        every = min(PAPERS_BATCHES, epoch) if self.batches is None else self.batches
        self._every = int(max(1, min(epoch, run) if every > run else every))
        self._ring = deque(self._ring, self._every)
        if self.anneal != 1 and self.anneal_steps > run:
            message = f"LDLF.anneal_steps {self.anneal_steps} is more than the {run:g} steps of training"
            rank_zero_warn(f"{message}: decisions get less sharp than anneal {self.anneal:g}; set it to {run:g}")

    @torch.no_grad()
    def update(self, collective: Collective) -> None:
        """Solve the leaves on the replay buffers of all ranks (Algorithm 1, line 8)."""
        # Samples come last in memory, as in the replay buffer.
        kept, target = (torch.cat([tensor.movedim(0, -1) for tensor in tensors], -1) for tensors in zip(*self._ring))
        kept, target = kept.movedim(-1, 0), target.t()
        if self.routing == "current":
            training = self.training
            self.eval()
            kept = self.route(kept)
            self.train(training)
        leaves = self.leaves
        if self.objective == "forest":  # one tree of all leaves; the trees' equal shares of 1/K cancel in Eq. 12
            kept, leaves = kept.flatten(1).unsqueeze(1), leaves.flatten(0, 1).unsqueeze(0)
        options = self.iterations, collective, self.leaf_smoothing, self.leaf_floor
        self.leaves.copy_(update_leaves(kept, target, leaves, *options).view_as(self.leaves))
        self._observed = 0

    @torch.no_grad()
    def charts(self, folder: Path, batch: dict[str, Tensor]) -> dict[str, Path]:
        """Draw the leaves of the first tree, with the share of the batch in each."""
        usage = self.route(batch["features"]).flatten(0, -3)[:, 0].mean(0)
        leaves = self.leaves[0].float().cpu().numpy()
        return {"leaves": charts.leaves(folder / "leaves.png", leaves, self.labels, usage.float().cpu().numpy())}

    @torch.no_grad()
    def evidence(self, features: Tensor) -> Evidence:
        """Return the leaves of one instance, (F,) or (k, F) of k members, weighted by routing probability."""
        weights = self.route(features).reshape(-1, *self.leaves.shape[:2]).mean(0) / self.trees
        trees, leaves = weights.shape
        names = [f"tree {tree}, leaf {leaf}" for tree in range(trees) for leaf in range(leaves)]
        return weigh(names, weights.flatten(), self.leaves.flatten(0, 1))

    def forget(self) -> None:
        """Empty the replay buffer."""
        self._ring.clear()
        self._observed = 0

    def memory_state(self, collective: Collective) -> dict[str, Tensor]:
        """Return the batches that the next update uses, of all ranks: rows in global order, and counts."""
        waiting = list(self._ring)[max(0, len(self._ring) - self._observed) :]
        batches = [[interleave(collective.gather(tensor)) for tensor in batch] for batch in waiting]
        rows = torch.tensor([len(kept) for kept, _ in batches], dtype=torch.long)
        state = {"observed": torch.tensor(self._observed), "rows": rows}
        if batches:
            state["kept"], state["target"] = (torch.cat(tensors) for tensors in zip(*batches))
        return state

    def load_memory_state(self, state: dict[str, Tensor], collective: Collective) -> None:
        """Distribute the saved replay buffer over the processes. Raises LDLError for samples of another head."""
        self._check_ring(state)
        self.forget()
        self._observed = int(state["observed"])
        if rows := state["rows"].tolist():
            device, mine = self.leaves.device, slice(collective.rank, None, collective.world_size)
            for kept, target in zip(state["kept"].split(rows), state["target"].split(rows)):
                self._ring.append((kept[mine].to(device), target[mine].to(device)))

    def _check_ring(self, state: dict[str, Tensor]) -> None:
        rows, observed = state["rows"], state["observed"]
        check_range(self, "rows", rows, 2**31)
        check_range(self, "observed", observed.reshape(1), self._every + 1)
        fits = rows.ndim == 1 and len(rows) <= self._every
        fits = fits and (not len(rows) or {"kept", "target"} <= state.keys())
        if fits and len(rows):
            count, kept, target = int(rows.sum()), state["kept"], state["target"]
            shape = self.leaves.shape[:2] if self.routing == "step" else (self.in_features,)
            fits = kept.shape == (count, *shape) and target.shape == (count, len(self.labels))
            fits = fits and bool(kept.isfinite().all() and target.isfinite().all())
        if not fits:
            refuse(self, "the recent samples", "are not those of its last batches")

    @torch.compiler.disable
    def _draw_tree(self) -> int:
        """Draw the tree of the next step from the number of the step, which is equal on all ranks."""
        self._step += 1
        return int(torch.randint(self.trees, (), generator=torch.Generator().manual_seed(self._step)))

    def _outputs(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return the routing (..., K, L), and the outputs (..., T, C) whose losses are averaged."""
        routing = self.route(features)
        with torch.autocast(routing.device.type, enabled=False):
            outputs = mix(routing, self.leaves.to(routing.dtype))
        return routing, outputs.mean(-2, keepdim=True) if self.objective == "forest" else outputs

    def _check_together(self) -> None:
        labels, nodes = len(self.labels), 2 ** (self.depth - 1) - 1
        if self.members > 1 and not self.hidden:
            raise LDLError(
                f"LDLF.members {self.members} share the hidden layers, and there are none; give hidden, or members: 1"
            )
        if self.trees % self.members:
            raise LDLError(f"LDLF.members {self.members} must divide trees, {self.trees}, which it distributes evenly")
        if self.outputs is not None and self.outputs < nodes:
            raise LDLError(
                f"LDLF.outputs {self.outputs!r} must be at least {nodes}, the split nodes of a tree of depth "
                f"{self.depth}, or null for a unit per node"
            )
        if self.ensemble == "alternating" and self.outputs is not None:
            raise LDLError("LDLF.ensemble 'alternating' shares no units between trees; set outputs: null")
        if self.objective == "forest" and (self.ensemble == "alternating" or self.tree_dropout):
            raise LDLError(
                "LDLF.objective 'forest' fits all trees together; set ensemble: joint and tree_dropout: 0, or "
                "objective: trees"
            )
        if self.ensemble == "alternating" and self.tree_dropout:
            raise LDLError("LDLF.ensemble 'alternating' trains one tree a batch; set tree_dropout: 0")
        if self.leaf_floor >= 1 / labels:
            raise LDLError(f"LDLF.leaf_floor {self.leaf_floor!r} must be below 1/{labels}, for {labels} labels")
        if self.buffer_rows is not None and self.buffer_rows < (batches := self.batches or PAPERS_BATCHES):
            raise LDLError(f"LDLF.buffer_rows {self.buffer_rows!r} must be at least batches, {batches}")
