"""What MILBoost and MPLBoost share."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, get_args

import numpy as np
import torch
from sklearn.model_selection import StratifiedShuffleSplit
from torch import Tensor

from ldl import charts
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.boosting.boost import Ensemble, Rules, boost
from ldl.methods.boosting.likelihood import CODES, Bags, Model
from ldl.methods.boosting.packing import choose, flat_scores, pack, present
from ldl.methods.boosting.places import locate
from ldl.methods.boosting.pooling import Pooling, check_pooling, pool_logits
from ldl.methods.boosting.stumps import Cut

MOST_MAPPED = 8
"""Pictures that are shown with the scores of all places in them."""


class BoostedBags(FittedHead):
    """Boosted stumps that score instances, for K groups; a soft maximum over both makes the probability of a bag.

    Attributes:
        curve: (rounds + 1, 2) negative log likelihood of the training bags before the first round and after each,
            and of the bags that were held out to choose the number of rounds (NaN without, and where none were left).
    """

    takes_bags: ClassVar[bool] = True
    pooling: Pooling
    r: float
    rounds: int
    real: bool
    cut: Cut
    features: float
    shrinkage: float
    max_step: float
    prior: float | None
    apart: bool
    validation: float
    patience: int
    seed: int | None
    threads: int | None
    feature: Tensor
    threshold: Tensor
    low: Tensor
    high: Tensor
    group: Tensor
    start: Tensor
    curve: Tensor

    @property
    def num_groups(self) -> int:
        """K."""
        return 1

    @property
    def clustering(self) -> tuple[int, float]:
        """Rounds in which groups learn from their clusters alone, and the share of variance that is whitened."""
        return 0, 0.0

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, without stumps until fitted: every bag is as likely positive as not. Raises LDLError."""
        self._check_arguments()
        if len(labels) != 2:
            raise LDLError(f"{self._name} needs two labels, the negative one first; the data have {len(labels)}")
        super().build(in_features, labels)
        self._store(Ensemble(), torch.device("cpu"))

    @torch.no_grad()
    def fit(self, features: Tensor, target: Tensor, collective: Collective) -> None:
        """Boost on bags (B, J, F) and labels (B, 2); soft labels count as both, by their shares.

        Every process does the same. Raises LDLError: no bags, an empty bag, bags of one class, a feature that is not
        finite, or too few bags to hold some out.
        """
        bags = pack(self._name, features, target, self.prior)
        model = Model(CODES[self.pooling], self.r, self.apart)
        rules = self._rules()
        held_curve: list[float] = []
        if self.validation:
            rest, held = self._hold_out(bags)
            trial = boost(choose(bags, rest), model, rules, choose(bags, held), self.patience)
            share = (bags.positive[held] + bags.negative[held]).sum()
            held_curve = [loss / share for _, loss in trial.curve]
            rules = rules._replace(rounds=int(np.argmin(held_curve)))
        ensemble = boost(bags, model, rules)
        padding = [math.nan] * len(ensemble.curve)
        ensemble.curve = [(loss, held) for (loss, _), held in zip(ensemble.curve, held_curve + padding)]
        self._store(ensemble, features.device)

    def forward(self, features: Tensor) -> Tensor:
        """Bags (..., J, F) to the probabilities (..., 2) of negative and positive, at least float32.

        A bag without instances is negative. Raises LDLError where a stump asks for a feature that is NaN.
        """
        scores = self.scores(features)
        mask = ~scores.isnan()
        return torch.stack(pool_logits(2 * scores.flatten(-2), self.pooling, self.r, mask.flatten(-2)), -1).exp()

    def scores(self, features: Tensor) -> Tensor:
        """h of every instance and group: bags (..., J, F) to (..., J, K); missing instances have NaN."""
        exists = present(features)
        rows = features[exists].float()
        found = flat_scores(rows, self.feature, self.threshold, self.low, self.high, self.group, self.num_groups)
        found = found.to(torch.promote_types(found.dtype, torch.float32)) + self.start
        return found.new_full((*exists.shape, self.num_groups), torch.nan).index_put((exists,), found)

    def instances(self, features: Tensor) -> Tensor:
        """Probability that an instance is positive: bags (..., J, F) to (..., J); missing instances have NaN."""
        scores = self.scores(features)
        pooled = pool_logits(2 * scores.nan_to_num(), self.pooling, self.r)[1].exp()
        return torch.where(scores[..., 0].isnan(), torch.nan, pooled)

    def memberships(self, features: Tensor) -> Tensor:
        """Share of every group in the probability of a bag: (..., J, F) to (..., K), on the simplex.

        The probabilities of the groups, each a soft maximum over the instances, divided by their sum; equal shares
        for a bag without instances.
        """
        scores = self.scores(features)
        logs = pool_logits(2 * scores, self.pooling, self.r, ~scores.isnan(), -2)[1]
        return torch.softmax(logs.nan_to_num(neginf=torch.finfo(logs.dtype).min), -1)

    def chart_order(self, prediction: Tensor) -> Tensor:
        """The likeliest positives first."""
        return prediction[:, 1].argsort(descending=True, stable=True)

    @torch.no_grad()
    def charts(self, folder: Path, batch: dict[str, Tensor]) -> dict[str, Path]:
        """The likelihood by rounds; of grey pictures found positive also their groups, and the places in them."""
        drawn = {}
        if len(self.curve) > 1:
            drawn["likelihood"] = charts.likelihood(folder / "likelihood.png", self.curve.cpu().numpy())
        boxes, pictures = batch.get("boxes"), batch.get("input", torch.empty(0))
        positive = torch.nonzero(batch["prediction"][:, 1] > 0.5)[:, 0]
        positive = positive if boxes is None else positive[:MOST_MAPPED]
        if pictures.dtype != torch.uint8 or pictures.ndim != 4 or pictures.shape[1] != 1 or not len(positive):
            return drawn
        grey, scores = pictures[positive, 0].cpu().numpy(), self.scores(batch["features"][positive])
        if self.num_groups > 1:
            drawn["groups"] = charts.groups(folder / "groups.png", grey, scores.amax(1).argmax(-1).cpu().numpy())
        if boxes is not None:
            truth = batch.get("truth", torch.empty(0))
            true = truth[positive].cpu().numpy() if truth.ndim == 2 else None
            window, stride = int(boxes[0, 2] - boxes[0, 0]), int(boxes.diff(dim=0).amax()) if len(boxes) > 1 else 1
            maps = scores.amax(-1).reshape(len(positive), len(boxes[:, 0].unique()), -1).cpu().numpy()
            path, places = folder / "score_maps.png", locate(maps) * stride
            drawn["score_maps"] = charts.score_maps(path, grey, maps, places, window, stride, true)
        return drawn

    def summary(self) -> dict[str, float]:
        """Negative log likelihood of the training bags, the stumps, and what held-out bags had at best."""
        figures = {"boosting_nll": float(self.curve[-1, 0]), "stumps": float(len(self.feature))}
        if self.validation:
            figures["held_out_nll"] = float(self.curve[~self.curve[:, 1].isnan(), 1].min())
        return figures

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> BoostedBags:
        # Thresholds in half precision would send instances elsewhere.
        threshold = self.__dict__.get("_buffers", {}).get("threshold")
        super()._apply(fn, recurse)
        if threshold is not None:
            self.threshold = threshold.to(self.feature.device)
        return self

    @property
    def _name(self) -> str:
        return type(self).__name__

    def _rules(self) -> Rules:
        seed = int(os.environ.get("PL_GLOBAL_SEED", 0)) if self.seed is None else self.seed
        tries = max(1, round(self.features * self.in_features))
        threads = self.threads or torch.get_num_threads()
        return Rules(
            self.num_groups, self.rounds, self.real, self.cut, *self.clustering,
            tries, self.shrinkage, self.max_step, seed, threads,
        )  # fmt: skip

    def _hold_out(self, bags: Bags) -> tuple[np.ndarray, np.ndarray]:
        label = bags.positive / bags.positive.sum() > bags.negative / bags.negative.sum()
        splitter = StratifiedShuffleSplit(1, test_size=self.validation, random_state=self._rules().seed % 2**32)
        try:
            rest, held = next(splitter.split(label, label))
        except ValueError as error:
            raise LDLError(f"{self._name}.validation {self.validation} of {len(label)} bags: {error}") from error
        return np.sort(rest), np.sort(held)

    def _store(self, ensemble: Ensemble, device: torch.device) -> None:
        columns = list(zip(*ensemble.stumps)) or [(), (), (), ()]
        for name, column in zip(("feature", "threshold", "low", "high"), columns):
            dtype = torch.long if name == "feature" else torch.float32
            self.register_buffer(name, torch.tensor(column, dtype=dtype, device=device))
        self.register_buffer("group", torch.tensor(ensemble.group, dtype=torch.long, device=device))
        self.register_buffer("start", torch.tensor(ensemble.start, dtype=torch.float32, device=device))
        curve = torch.tensor(ensemble.curve or [(math.nan, math.nan)], dtype=torch.float32, device=device)
        self.register_buffer("curve", curve)

    def _check_arguments(self) -> None:
        check_pooling(self._name, self.pooling, self.r)
        least = [("rounds", self.rounds, 0), ("patience", self.patience, 1), ("groups", self.num_groups, 1)]
        clustered, whitened = self.clustering
        for name, value, bound in [*least, ("clustered", clustered, 0)]:
            if value < bound:
                raise LDLError(f"{self._name}.{name} {value!r} must be at least {bound}")
        if not 0 <= whitened < 1:
            raise LDLError(f"{self._name}.whitened {whitened!r} must be in [0, 1), a share of the variance")
        if self.cut not in get_args(Cut):
            raise LDLError(f"{self._name}.cut {self.cut!r} must be one of {', '.join(get_args(Cut))}")
        for name in ("features", "shrinkage"):
            if not 0 < getattr(self, name) <= 1:
                raise LDLError(f"{self._name}.{name} {getattr(self, name)!r} must be in (0, 1]")
        if not 0 < self.max_step < math.inf:
            raise LDLError(f"{self._name}.max_step {self.max_step!r} must be above 0 and finite")
        if self.prior is not None and not 0 < self.prior < 1:
            raise LDLError(f"{self._name}.prior {self.prior!r} must be in (0, 1), or null for the data's")
        if not 0 <= self.validation < 1:
            raise LDLError(f"{self._name}.validation {self.validation!r} must be in [0, 1), a share of the bags")
        if self.seed is not None and not 0 <= self.seed < 2**63:
            raise LDLError(f"{self._name}.seed {self.seed!r} must be in 0..2^63 - 1, or null for the run's")
        if self.threads is not None and self.threads < 1:
            raise LDLError(f"{self._name}.threads {self.threads!r} must be at least 1, or null for torch's")
