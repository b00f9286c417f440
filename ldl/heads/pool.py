"""A head that pools the predictions of other heads, with weights fitted to out-of-fold predictions."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead, Head, ImageHead
from ldl.heads.max_ent import MaxEnt
from ldl.heads.structrf import StructRF
from ldl.heads.trained import Trained
from ldl.heads.wrappers import Mirrored, Scaled
from ldl.labels import LabelSpace
from ldl.methods.opinion_pool import PoolMean, pool, pool_weights
from ldl.methods.rows import Rows
from ldl.methods.torch_utils import traced
from ldl.methods.training_rows import check_rows
from ldl.metrics.functional import kl
from ldl.options import buffer, option, options
from ldl.progress import track
from ldl.protocols import kfold


@options
class Pool(FittedHead):
    """Weighted combination of the predictions of several heads: an opinion pool (Genest & Zidek 1986).

    Fitting has three steps:

    1. Divide the training set into ``folds`` inner folds; the rows of a group stay in one fold. Fit every member on all
       folds but one, and predict the rows of the fold that was left out.
    2. Choose the weights, at least 0, with which the pool of these out-of-fold predictions has the smallest mean KL
       divergence from the targets, plus a penalty that draws the weights towards equal weights
       (:mod:`ldl.methods.opinion_pool`). A member that overfits gains nothing, because it has not seen the rows that it
       predicts.
    3. Fit the members with a positive weight again, on the whole training set.

    A single member is fitted once, without inner folds. With several processes, each member shares its fit among them.
    Source: Genest & Zidek, "Combining Probability Distributions", Statistical Science 1986.

    Args:
        members: Heads to combine, each of which is fitted on rows; None takes ``StructRF``, ``Trained`` and ``MaxEnt``.
            Wrap a head that learns by gradient in ``Trained``.
        mean: How distributions are combined. ``arithmetic``: the weighted mean. ``geometric``: the weighted geometric
            mean, normalised. The weights of both sum to 1. ``multiplicative``: each member contributes the ratio of its
            prediction to the mean distribution of the training set, and the mean distribution times the weighted
            product of the ratios is normalised (Bordley, Management Science 1982). Its weights, at most 4 each, may
            have any sum. A sum below 1 moves predictions towards the mean distribution, and a sum above 1 away from it.
            Probabilities below 1e-12 count as 1e-12 in logarithms.
        folds: Number of inner folds. Each member is fitted ``folds`` + 1 times.
        seed: Seed of the inner folds; None takes the seed of the run.
        shrinkage: Strength of the penalty, which is ``shrinkage`` / (2 N) times the squared distance from equal
            weights. N is the number of rows, or of groups if groups are known. 0 switches the penalty off.

    Attributes:
        weights: (M,) weights of the members.
        base: (C,) mean distribution of the training set, for ``multiplicative``.
        member_kl: (M,) mean KL divergence of the members' out-of-fold predictions, in nats; NaN if not measured.
        pool_kl: Mean KL divergence of the pooled out-of-fold predictions. It is slightly optimistic, because the
            weights were fitted to the same rows.

    Examples:
        >>> import numpy as np
        >>> from ldl import LDLRegressor
        >>> from ldl.heads import AAKNN, MaxEnt, Pool
        >>> X = np.linspace(0, 1, 40)[:, None]
        >>> y = np.hstack([X, 1 - X])
        >>> LDLRegressor(Pool([AAKNN(), MaxEnt()], folds=2)).fit(X, y).predict([[0.4]]).round(1)
        array([[0.4, 0.6]], dtype=float32)
    """

    uses_weight: ClassVar[bool] = True
    float32_buffers: ClassVar[tuple[str, ...]] = ("weights", "base")
    weights: Tensor = buffer()
    base: Tensor = buffer()
    member_kl: Tensor = buffer()
    pool_kl: Tensor = buffer()

    members: list[Head] = option(default=None)
    mean: PoolMean = "multiplicative"
    folds: int = option(default=5, least=2, most=1000)
    seed: int | None = option(default=None, least=0, most=2**32 - 1, null="the run's seed")
    shrinkage: float = option(default=1.0, least=0, most=1e9)

    def __post_init__(self) -> None:
        members = [StructRF(), Trained(), MaxEnt()] if self.members is None else self.members
        self.members = nn.ModuleList(members)  # type: ignore[assignment]  # it registers what it holds

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the members, with equal weights. Raises LDLError, which names a member that is not fitted on rows."""
        super().build(in_features, labels)
        if not len(self.members):
            raise LDLError("Pool.members is empty; name one head or more")
        for number, member in enumerate(self.members):
            if not isinstance(member, FittedHead):
                name = type(member).__name__
                raise LDLError(
                    f"{self._place(number)} learns by gradient; put it into Trained: {{class_path: Trained, "
                    f"init_args: {{head: {name}}}}}"
                )
            if isinstance(member, ImageHead) or member.takes_bags:
                raise LDLError(f"{self._place(number)} takes images or bags; Pool takes heads that are fitted on rows")
            with self._naming(number):
                member.build(in_features, labels)
        count = len(self.members)
        self.register_buffers(weights=torch.full((count,), 1 / count), member_kl=torch.full((count,), torch.nan))
        self.register_buffers(pool_kl=torch.tensor(torch.nan))
        if self.mean == "multiplicative":
            self.register_buffers(base=torch.full((len(labels),), 1 / len(labels)))

    def fit(self, rows: Rows, collective: Collective) -> None:
        """Fit the weights, then the members with a positive weight.

        Raises LDLError if there are fewer rows or groups than folds; errors of a member get its name.
        """
        check_rows(type(self).__name__, rows)
        base = rows.share @ rows.target.double()
        if self.mean == "multiplicative":
            self.base = base.to(self.base)
        if len(self.members) > 1:
            self._fit_weights(rows, base, collective)
        for number in track(self.used, len(self.used), "fitting members", self.shows_progress):
            with self._naming(number):
                self._member(number).fit(rows, collective)

    def forward(self, features: Tensor) -> Tensor:
        """Pool the members with a positive weight: (..., F) to (..., C)."""
        base = self.base if self.mean == "multiplicative" else None
        if not self.used:
            assert base is not None  # the weights of the other means sum to 1
            return base.expand(*features.shape[:-1], -1)
        predictions = torch.stack([self.members[number](features) for number in self.used])
        return pool(predictions, self.weights[self.used], self.mean, base)

    @property
    def used(self) -> list[int]:
        """Numbers of the members with a positive weight; an exported graph always has all members."""
        return list(range(len(self.members))) if traced() else self.weights.nonzero().flatten().tolist()

    @property
    def names(self) -> list[str]:
        """Class name of each member, or of the head in its wrapper; equal names get numbers, such as ``MaxEnt_2``."""
        names = [type(m.head if isinstance(m, Mirrored | Scaled | Trained) else m).__name__ for m in self.members]
        counts, seen = Counter(names), Counter[str]()
        for number, name in enumerate(names):
            seen[name] += 1
            names[number] = f"{name}_{seen[name]}" if counts[name] > 1 else name
        return names

    def summary(self) -> dict[str, float]:
        """Return the weight and out-of-fold KL of each member, and the KL of the pool; empty for a single member."""
        if len(self.members) == 1:
            return {}
        weights = {f"weight_{name}": float(weight) for name, weight in zip(self.names, self.weights)}
        inner = {f"inner_kl_{name}": float(each) for name, each in zip(self.names, self.member_kl)}
        return {**weights, **inner, "inner_kl_pool": float(self.pool_kl)}

    @override
    def describe_buffers(self) -> dict[str, str]:
        members = len(self.members)
        rules = {"weights": f"{members}: distributions", "member_kl": f"{members}", "pool_kl": ""}
        if self.mean == "multiplicative":
            rules |= {"weights": f"{members}: not negative", "base": "C: distributions"}
        return rules

    def _fit_weights(self, rows: Rows, base: Tensor, collective: Collective) -> None:
        """Fit the weights to out-of-fold predictions; ``base`` (C,) is the mean distribution of the training set."""
        outside, target, share = self._predict_outside(rows, collective), rows.target.double(), rows.share
        count = len(rows) if rows.weight is None else float(rows.weight.double().sum())
        shrinkage = self.shrinkage / (count if rows.group is None else len(rows.group.unique()))
        predicted, true, mean, shares = (tensor.double().cpu().numpy() for tensor in (outside, target, base, share))
        weights = torch.from_numpy(pool_weights(predicted, true, self.mean, mean, shrinkage, shares))
        pooled = pool(outside, weights.to(outside), self.mean, base)
        self.member_kl = (kl(outside, target) @ share).to(self.weights)
        self.pool_kl = (kl(pooled, target) @ share).to(self.weights)
        self.weights = collective.broadcast(weights.to(self.weights))

    def _predict_outside(self, rows: Rows, collective: Collective) -> Tensor:
        """Return out-of-fold predictions of every member, (M, N, C) float64."""
        seed, groups, device = run_seed(self.seed), rows.group_array, rows.target.device
        try:
            cuts = [kfold(len(rows), self.folds, fold, seed, groups=groups) for fold in range(self.folds)]
        except LDLError as error:
            raise LDLError(f"Pool.{error}") from None
        outside = rows.target.new_empty(len(self.members), *rows.target.shape, dtype=torch.float64)
        jobs = [(number, cut) for number in range(len(self.members)) for cut in cuts]
        for number, cut in track(jobs, len(jobs), "fitting members on inner folds", self.shows_progress):
            train, test = torch.from_numpy(cut.train).to(device), torch.from_numpy(cut.test).to(device)
            with self._naming(number):
                member = copy.deepcopy(self._member(number)).eval()
                member.fit(rows[train], collective)
                outside[number, test] = member(rows.features[test]).to(outside)
        return outside

    def _member(self, number: int) -> FittedHead:
        member = self.members[number]
        assert isinstance(member, FittedHead)  # by build
        return member

    def _place(self, number: int) -> str:
        return f"Pool.members[{number}] {type(self.members[number]).__name__}"

    @contextmanager
    def _naming(self, number: int) -> Iterator[None]:
        """Add the name of a member to its errors."""
        try:
            yield
        except LDLError as error:
            raise type(error)(f"{self._place(number)}: {error}") from error
        except Exception as error:
            error.add_note(f"in {self._place(number)}")
            raise
