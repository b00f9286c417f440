"""A network for tables that an ensemble shares (TabM), with embeddings of numbers."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar

import rtdl_num_embeddings
import tabm
import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from ldl.backbones.base import Backbone
from ldl.errors import LDLError
from ldl.options import buffer, check_options, option, options
from ldl.validation.tensors import check_buffers, refuse

FEW_NUMBERS = 0.1
"""Largest share of numbers among the features with which they get embeddings by the rule for None."""
EMBEDDING = 8
"""Width of these embeddings."""
SPARSE = 0.05
"""Largest share of inputs other than 0 with which the first layer learns from these entries alone."""


@options
class Tabular(Backbone):
    """Hidden layers for tables that an ensemble shares (TabM, Gorishniy et al., ICLR 2025).

    Every member scales the inputs and outputs of each layer, and the features, by weights of its own. Those of the
    inputs and of the features start as random signs, the others as ones. All other weights are shared. A head predicts
    from the features of each member: the loss is the mean of the members' losses, and the prediction the mean of their
    distributions. Inputs should have the scaling ``ranks``.

    A number, in contrast to a feature of two numbers, can have an embedding beside it: a line and a piecewise linear
    function with knots at quantiles of the training rows (Gorishniy, Rubachev & Babenko, NeurIPS 2022).

    A feature of two numbers, such as a word or a category, counts the less the fewer rows it was learned from.

    The first layer learns from batches with few entries other than 0, such as bags of words, by these entries alone,
    which gives the same sums in less time.

    Args:
        members: Number of members k.
        hidden: Widths of the hidden ReLU layers, at least one.
        dropout: Dropout after each hidden layer.
        feature_dropout: Dropout on the inputs, for every member apart.
        embedding: Width of the embedding of a number; 0 for none. None takes 8 if at most a tenth of the features are
            numbers, as in tables of many categories. In other tables they overfit.
        bins: Largest number of pieces of an embedding.
        shrinkage: Features of two numbers are multiplied by n / (n + shrinkage), where n of the training rows, or of
            10,000 of them, have the rarer number. 0 takes all features as they are.

    Attributes:
        factors: (F,) what the features are multiplied by.
        numbers: (M,) the features that have embeddings.
        edges: (M, E) the ends of their pieces, rising; the last one is repeated where a number has fewer pieces.

    Examples:
        >>> import torch
        >>> from ldl.backbones import Tabular
        >>> backbone = Tabular(members=4, hidden=[16])
        >>> backbone.build((3,))
        16
        >>> backbone(torch.zeros(2, 3)).shape
        torch.Size([2, 4, 16])
    """

    gives_members: ClassVar[bool] = True
    learns_inputs: ClassVar[bool] = True
    factors: Tensor = buffer()
    numbers: Tensor = buffer()
    edges: Tensor = buffer()
    embeddings: nn.Module | None = buffer()
    network: nn.Sequential = buffer()

    members: int = option(default=8, least=1, most=1024)
    hidden: Sequence[int] = option(default=(512,), least=1, most=2**16)
    dropout: float = option(default=0.2, least=0, below=1)
    feature_dropout: float = option(default=0.1, least=0, below=1)
    embedding: int | None = option(default=None, least=0, most=1024, null="8 if numbers are few among the features")
    bins: int = option(default=48, least=2, most=4096)
    shrinkage: float = option(default=20.0, least=0)

    def build(self, input_shape: tuple[int, ...], load_weights: bool = True) -> int:
        """Create the network for rows of features, without embeddings. Raises LDLError for other inputs."""
        check_options(self)
        if len(input_shape) != 1:
            shape = "x".join(map(str, input_shape))
            raise LDLError(f"Tabular takes rows of features, got inputs of {shape}; use the Timm backbone for images")
        if not self.hidden:
            raise LDLError("Tabular.hidden is empty; give the width of a layer, such as [256], or use Identity")
        self._features = input_shape[0]
        self._chooses_numbers = True
        self.register_buffer("factors", torch.ones(self._features))
        self.register_buffer("numbers", torch.empty(0, dtype=torch.long))
        self.register_buffer("edges", torch.empty(0, 2))
        self.embeddings, self.network = None, self._make_layers()
        return self.hidden[-1]

    def learn_inputs(self, rows: Tensor) -> None:
        """Choose the factors and the embeddings, unless the network has learned before or was loaded."""
        if not self._chooses_numbers:
            return
        self._chooses_numbers = False
        ordered = rows.sort(0).values
        steps = (ordered.diff(dim=0) > 0).sum(0)
        lower = (rows == ordered[0]).sum(0)
        rarer = torch.minimum(lower, len(rows) - lower)
        self.factors = torch.where(steps == 1, rarer / (rarer + self.shrinkage), 1.0).to(rows.dtype)
        numbers = (steps > 1).nonzero().flatten()
        few = len(numbers) <= FEW_NUMBERS * self._features
        if len(numbers) and (few if self.embedding is None else self.embedding):
            levels = torch.linspace(0, 1, self.bins + 1, dtype=rows.dtype)
            self.numbers, self.edges = numbers, torch.quantile(ordered[:, numbers], levels, dim=0).t().contiguous()
            self.embeddings, self.network = self._make_embeddings(), self._make_layers()

    def forward(self, inputs: Tensor) -> Tensor:
        """Map rows (B, F) to the features (B, k, H) of the members."""
        inputs = inputs * self.factors
        if self.embeddings is not None:
            embedded = self.embeddings(inputs.index_select(1, self.numbers))
            inputs = torch.cat([inputs, embedded.flatten(1)], 1)
        if self.training and inputs.count_nonzero() <= SPARSE * inputs.numel():
            features: Tensor = self.network[3:](self._sum_entries(inputs))
        else:
            features = self.network(inputs)
        return features

    def _sum_entries(self, inputs: Tensor) -> Tensor:
        """Return the outputs (B, k, H) of the first layer for inputs (B, F), without multiplying by entries of 0."""
        dropout, layer = self.network[1], self.network[2]
        assert isinstance(layer, tabm.LinearBatchEnsemble)
        kept = inputs != 0
        kept[:, self._features :] = True  # embeddings that are 0 have gradients, too
        rows, columns = kept.nonzero(as_tuple=True)
        entries = dropout(inputs[rows, columns].expand(self.members, -1)) * layer.r[:, columns]
        counts = rows.bincount(minlength=len(inputs)).repeat(self.members)
        sums = embedding_bag(
            columns.repeat(self.members),
            layer.weight.t().contiguous(),
            counts.cumsum(0) - counts,
            mode="sum",
            per_sample_weights=entries.flatten(),
        )
        return sums.unflatten(0, (self.members, -1)).transpose(0, 1) * layer.s + layer.bias

    def complete_state(self, state: dict[str, Any], prefix: str) -> None:
        """Give the network the factors and the embeddings of a saved state. Raises LDLError for a damaged one."""
        saved = {name.removeprefix(prefix): held for name, held in state.items() if name.startswith(prefix)}
        if not saved.keys() >= {"factors", "numbers", "edges"}:
            return
        self._chooses_numbers = False
        if saved["numbers"].shape == self.numbers.shape:
            return
        self.factors, self.numbers, self.edges = saved["factors"], saved["numbers"], saved["edges"]
        self._check_learned()
        pieces, weight = max(len(row.unique()) for row in self.edges) - 1, saved.get("embeddings.linear.weight")
        if weight is None or weight.shape != (len(self.numbers), pieces, self._size):
            refuse(self, "embeddings.linear.weight", f"is not of {len(self.numbers)} numbers in {pieces} pieces")
        former = next(self.network.parameters())
        self.embeddings = self._make_embeddings()
        with former.device:
            self.network = self._make_layers()
        for parameter in self.parameters():
            parameter.requires_grad_(former.requires_grad)
        self.train(self.training)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        self.complete_state(state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *args)

    def check_state(self) -> None:
        """Raise LDLError for an invalid loaded state, such as pieces without a length."""
        super().check_state()
        if "numbers" in self._buffers:  # not in the unbuilt backbone that Trained copies
            self._check_learned()

    def _check_learned(self) -> None:
        rules = {"factors": "F: finite", "numbers": "M: 0 <= number < F", "edges": "M E: finite"}
        check_buffers(self, rules, F=self._features)
        steps = self.edges.diff(dim=1)
        if not bool((steps >= 0).all() and (steps > 0).any(1).all()):
            refuse(self, "edges", "holds pieces that end before they begin, or none")

    @property
    def _size(self) -> int:
        return self.embedding or EMBEDDING

    def _make_embeddings(self) -> nn.Module | None:
        """Return the embeddings of ``numbers``, or None without numbers."""
        if not len(self.numbers):
            return None
        pieces = [row.unique() for row in self.edges]
        with warnings.catch_warnings():
            # A single piece is a line, which suits a number that nearly always has the same value.
            warnings.filterwarnings("ignore", message=r"The \d+-th feature has just two bin edges")
            return rtdl_num_embeddings.PiecewiseLinearEmbeddings(pieces, self._size, activation=False, version="B")

    def _make_layers(self) -> nn.Sequential:
        """Return the layers behind the embeddings."""
        width, start = self._features + len(self.numbers) * self._size, ("random-signs", "ones")
        layers: list[nn.Module] = [tabm.EnsembleView(k=self.members), nn.Dropout(self.feature_dropout)]
        for hidden in self.hidden:
            layers += [tabm.LinearBatchEnsemble(width, hidden, k=self.members, scaling_init=start), nn.ReLU()]
            layers += [nn.Dropout(self.dropout)]
            width, start = hidden, ("ones", "ones")
        return nn.Sequential(
            *layers, tabm.ElementwiseAffine((self.members, width), bias=False, scaling_init="random-signs")
        )
