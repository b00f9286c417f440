"""Boosting from bags of instances: MIL-Boost and MPL-Boost (Babenko et al. 2008, Sections 2.3 to 2.5)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from sklearn.model_selection import StratifiedShuffleSplit
from torch import Tensor
from typing_extensions import override

from ldl import charts
from ldl.bags.boost import BoostingOptions, Cut, Ensemble, boost, flat_scores, scores_or_nan
from ldl.bags.layout import PackedBags, choose, pack, present
from ldl.bags.likelihood import POOLING_CODES, Model
from ldl.bags.pooling import Pooling, locate, pool_logits
from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead
from ldl.labels import LabelSpace
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import traced
from ldl.options import buffer, option, options
from ldl.validation.tensors import refuse

MOST_MAPPED = 8
"""Largest number of images in the chart of score maps."""


@options
class MILBoost(FittedHead):
    """MIL-Boost: a bag is positive if at least one of its instances is positive, and only bags have labels.

    An instance has the probability sigmoid(2 h), where h is a sum of decision stumps. The probability of a bag is the
    MIL pooling of its instances. Each round is a step of gradient boosting on the negative log likelihood of the bags:
    the weights of the instances are the negative gradient (Eq. 15), they choose a stump (Fig. 6), and a line search
    finds its step. Unlike in the paper, h starts at the constant of maximum likelihood. Otherwise noisy or and ISR
    would start at p = 1 for large bags, without a gradient.

    Inputs are bags (..., J, F) with NaN for missing instances; single rows are bags of one instance. ``instances``
    returns the probabilities of instances, ``scores`` their h.

    Args:
        pooling: MIL pooling over the instances, and over the groups of MPLBoost. Of probabilities (Table 1): ``lse``
            log-sum-exponential, ``gm`` generalised mean, ``nor`` noisy or, ``isr``; of h: ``lse_score``,
            log-sum-exponential (Eq. 20).
        r: Sharpness of ``lse``, ``gm`` and ``lse_score``, at least 1. The paper does not state its value.
        rounds: Number of stumps T per group.
        real: Whether a stump predicts half the log odds of the weights on its sides, instead of -1 and 1.
        cut: Criterion of the threshold of a real stump: ``error``, the weighted error (Fig. 6), or ``bound``,
            sqrt(W+ W-) summed over its sides (Schapire & Singer 1999).
        features: Share of the features that a stump tries, in (0, 1], drawn for each stump.
        shrinkage: Factor of every step of the line search, in (0, 1].
        max_step: Largest change of h by one stump, which matters if a stump separates the bags perfectly.
        prior: Weight of positive bags, in (0, 1); 0.5 balances both kinds, None uses the shares in the data.
        apart: Whether each instance of a negative bag counts as a negative bag (Eq. 22).
        validation: Share of the training bags held out to choose the number of rounds by their likelihood, with whole
            groups if these are known. All bags are then boosted for this number. 0 holds out none.
        patience: Rounds without a better likelihood of the held-out bags after which the search stops.
        seed: Seed of random draws; None uses the run's seed.
        threads: Threads that search for a stump; None uses torch's number. The result does not depend on it.

    Attributes:
        curve: (rounds + 1, 2) negative log likelihood before the first round and after each round, of the training bags
            and of the held-out bags (NaN without held-out bags).

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace
        >>> from ldl.bags import MILBoost
        >>> from ldl.collective import Collective
        >>> from ldl.methods.rows import Rows
        >>> bags = torch.tensor([[[0.0], [1.0]], [[0.0], [5.0]]] * 10)  # only the 5 is positive
        >>> target = torch.eye(2).repeat(10, 1)
        >>> head = MILBoost(rounds=5)
        >>> head.build(1, LabelSpace.nominal(["no", "yes"]))
        >>> head.fit(Rows(bags, target), Collective())
        >>> head.instances(bags[1]) > 0.5
        tensor([False,  True])
    """

    takes_bags: ClassVar[bool] = True
    uses_weight: ClassVar[bool] = True
    exact: ClassVar[tuple[str, ...]] = ("threshold",)
    # MPLBoost has options of these names.
    groups = 1
    clustered = 0
    whitened = 0.0

    feature: Tensor = buffer()
    threshold: Tensor = buffer()
    low: Tensor = buffer()
    high: Tensor = buffer()
    group: Tensor = buffer()
    start: Tensor = buffer()
    curve: Tensor = buffer()

    pooling: Pooling = "lse"
    r: float = option(default=5.0, least=1, below=math.inf, what="large is sharp")
    rounds: int = option(default=64, least=0, most=10**6)
    real: bool = True
    cut: Cut = "bound"
    features: float = option(default=1.0, above=0, most=1)
    shrinkage: float = option(default=1.0, above=0, most=1)
    max_step: float = option(default=4.0, above=0, below=math.inf)
    prior: float | None = option(default=None, above=0, below=1, null="the data's")
    apart: bool = False
    validation: float = option(default=0.0, least=0, below=1, what="a share of the bags")
    patience: int = option(default=20, least=1)
    seed: int | None = option(default=None, least=0, most=2**63 - 1, null="the run's seed")
    threads: int | None = option(default=None, least=1, most=1024, null="torch's number", may_change=True)

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Create the buffers, without stumps until fitted, so that every bag has probability 0.5. Raises LDLError."""
        if len(labels) != 2:
            name = type(self).__name__
            raise LDLError(f"{name} needs two labels, the negative one first; the data have {len(labels)}")
        super().build(in_features, labels)
        self._store(Ensemble(), torch.device("cpu"))

    @torch.no_grad()
    def fit(self, rows: Rows, collective: Collective) -> None:
        """Boost on bags (B, J, F) and labels (B, 2).

        Soft labels count for both classes. Every process does the same. Raises LDLError for no bags, an empty bag, bags
        of one class, a bad feature or target, or too few bags or groups to hold some out.
        """
        bags = pack(type(self).__name__, rows, self.prior)
        model = Model(POOLING_CODES[self.pooling], self.r, self.apart)
        tries, threads = max(1, round(self.features * self.in_features)), self.threads or torch.get_num_threads()
        rules = BoostingOptions(
            self.groups, self.rounds, self.real, self.cut, self.clustered, self.whitened,
            tries, self.shrinkage, self.max_step, run_seed(self.seed), threads,
        )  # fmt: skip
        held_curve: list[float] = []
        if self.validation:
            train, held_out = self._hold_out(bags, rows)
            trial = boost(choose(bags, train), model, rules, choose(bags, held_out), self.patience)
            share = (bags.positive[held_out] + bags.negative[held_out]).sum()
            held_curve = [loss / share for _, loss in trial.curve]
            rules = rules._replace(rounds=int(np.argmin(held_curve)))
        ensemble = boost(bags, model, rules)
        padding = [math.nan] * len(ensemble.curve)
        ensemble.curve = [(loss, held) for (loss, _), held in zip(ensemble.curve, held_curve + padding)]
        self._store(ensemble, rows.features.device)

    def forward(self, features: Tensor) -> Tensor:
        """Map bags (..., J, F) to probabilities (..., 2) of negative and positive, at least float32.

        A bag without instances is negative. Raises LDLError if a stump reads a feature that is NaN.
        """
        scores = self.scores(features).flatten(-2)
        return torch.stack(pool_logits(2 * scores, self.pooling, self.r, ~scores.isnan()), -1).exp()

    def scores(self, features: Tensor) -> Tensor:
        """Return h of every instance and group: bags (..., J, F) to (..., J, K), NaN for missing instances."""
        exists = present(features)
        stumps = self.feature, self.threshold, self.low, self.high, self.group, self.groups
        if traced():
            scores = scores_or_nan(features.float(), *stumps) + self.start
            return torch.where(exists.unsqueeze(-1), scores, torch.nan)
        scores = flat_scores(features[exists].float(), *stumps)
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32)) + self.start
        return scores.new_full((*exists.shape, self.groups), torch.nan).index_put((exists,), scores)

    def instances(self, features: Tensor) -> Tensor:
        """Return probabilities of instances: bags (..., J, F) to (..., J), NaN for missing instances."""
        scores = self.scores(features)
        pooled = pool_logits(2 * scores.nan_to_num(), self.pooling, self.r)[1].exp()
        return torch.where(scores[..., 0].isnan(), torch.nan, pooled)

    def memberships(self, features: Tensor) -> Tensor:
        """Return the share of every group in the probability of a bag: (..., J, F) to (..., K), on the simplex.

        These are the pooled probabilities of the groups divided by their sum; equal shares for an empty bag.
        """
        scores = self.scores(features)
        logs = pool_logits(2 * scores, self.pooling, self.r, ~scores.isnan(), -2)[1]
        return torch.softmax(logs.nan_to_num(neginf=torch.finfo(logs.dtype).min), -1)

    def chart_order(self, prediction: Tensor) -> Tensor:
        """Return the order of decreasing probability of the positive label."""
        return prediction[:, 1].argsort(descending=True, stable=True)

    @torch.no_grad()
    def charts(self, folder: Path, batch: dict[str, Tensor]) -> dict[str, Path]:
        """Draw the likelihood by rounds, and groups and score maps of grey images that are predicted positive."""
        drawn = {}
        if len(self.curve) > 1:
            drawn["likelihood"] = charts.likelihood(folder / "likelihood.png", self.curve.cpu().numpy())
        boxes, images = batch.get("boxes"), batch.get("input", torch.empty(0))
        positive = torch.nonzero(batch["prediction"][:, 1] > 0.5)[:, 0]
        positive = positive if boxes is None else positive[:MOST_MAPPED]
        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] != 1 or not len(positive):
            return drawn
        grey, scores = images[positive, 0].cpu().numpy(), self.scores(batch["features"][positive])
        if self.groups > 1:
            drawn["groups"] = charts.groups(folder / "groups.png", grey, scores.amax(1).argmax(-1).cpu().numpy())
        if boxes is not None:
            truth = batch.get("truth", torch.empty(0))
            true = truth[positive].cpu().numpy() if truth.ndim == 2 else None
            window, stride = int(boxes[0, 2] - boxes[0, 0]), int(boxes.diff(dim=0).amax()) if len(boxes) > 1 else 1
            maps = scores.amax(-1).reshape(len(positive), len(boxes[:, 0].unique()), -1).cpu().numpy()
            path, places = folder / "score_maps.png", locate(maps) * stride
            drawn["score_maps"] = charts.score_maps(path, grey, maps, places, window, stride, true)
        return drawn

    @override
    def describe_buffers(self) -> dict[str, str]:
        return {
            "feature": "T: 0 <= number < F",
            "threshold": "T: finite",
            "low": "T: finite",
            "high": "T: finite",
            "group": f"T: 0 <= number < {self.groups}",
            "start": ": finite",
            "curve": "R 2",
        }

    def check_state(self) -> None:
        """Raise LDLError unless the buffers are stumps on these features, with a curve."""
        super().check_state()
        if not len(self.curve):
            refuse(self, "curve", "is empty, and has a row before the first round")

    def summary(self) -> dict[str, float]:
        """Return the negative log likelihood of training and held-out bags, and the number of stumps."""
        results = {"boosting_nll": float(self.curve[-1, 0]), "stumps": float(len(self.feature))}
        if self.validation:
            results["held_out_nll"] = float(self.curve[~self.curve[:, 1].isnan(), 1].min())
        return results

    def _hold_out(self, bags: PackedBags, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the training bags, and of the bags that are held out, both rising."""
        label = bags.positive / bags.positive.sum() > bags.negative / bags.negative.sum()
        option, seed = f"{type(self).__name__}.validation {self.validation}", run_seed(self.seed)
        try:
            if rows.group is None:
                splitter = StratifiedShuffleSplit(1, test_size=self.validation, random_state=seed % 2**32)
                train, held_out = next(splitter.split(label, label))
            else:
                train, held_out = rows.hold_out(self.validation, seed)
        except ValueError as error:
            units = f"{len(label)} bags" if rows.group is None else f"{len(rows.group.unique())} groups"
            raise LDLError(f"{option} of {units}: {error}") from error
        if any(label[numbers].all() or not label[numbers].any() for numbers in (train, held_out)):
            raise LDLError(
                f"{option} of {len(label)} bags, of which {label.sum()} are positive, leaves a part with bags of one "
                "kind; take another share, or 0"
            )
        return np.sort(train), np.sort(held_out)

    def _store(self, ensemble: Ensemble, device: torch.device) -> None:
        stumps = list(zip(*ensemble.stumps)) or [()] * 4
        learned = [*stumps, ensemble.group, ensemble.start, ensemble.curve or [(math.nan, math.nan)]]
        for name, values in zip(("feature", "threshold", "low", "high", "group", "start", "curve"), learned):
            dtype = torch.long if name in ("feature", "group") else torch.float32
            self.register_buffer(name, torch.tensor(values, dtype=dtype, device=device))


@options
class MPLBoost(MILBoost):
    """MPL-Boost: positives fall into K unlabelled groups, and each group has its own classifier.

    An instance has K probabilities sigmoid(2 h^k). The probability of a bag is the MIL pooling over groups and
    instances together (Eq. 18 and 19). Rounds iterate over the groups; each stump changes one h^k (Fig. 5). See
    :class:`MILBoost` for the rest. ``memberships`` returns the shares of the groups in a bag.

    Args:
        groups: Number of groups K.
        clustered: Number of first rounds in which a stump of a group is chosen by one cluster of the positives (k-means
            of the instances of positive bags). Steps are found by the likelihood as usual. 0 starts all groups alike.
        whitened: Share of the variance of all instances, in [0, 1), in the whitened principal components that are
            clustered. Whitening finds groups that differ in directions of small variance, and takes F^2 (N + F)
            operations. 0 clusters the standardised features.

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace
        >>> from ldl.bags import MPLBoost
        >>> from ldl.collective import Collective
        >>> from ldl.methods.rows import Rows
        >>> bags = torch.tensor([[[0.0], [1.0]], [[0.0], [5.0]]] * 10)
        >>> head = MPLBoost(rounds=5, groups=2)
        >>> head.build(1, LabelSpace.nominal(["no", "yes"]))
        >>> head.fit(Rows(bags, torch.eye(2).repeat(10, 1)), Collective())
        >>> head.memberships(bags).shape
        torch.Size([20, 2])
    """

    groups: int = option(default=3, least=1, most=1000)
    clustered: int = option(default=5, least=0)
    whitened: float = option(default=0.0, least=0, below=1, what="a share of the variance")
