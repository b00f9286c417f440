"""A head of heads: their predictions pooled, with weights found on rows that trained none of them."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ldl.batch import run_seed
from ldl.collective import Collective
from ldl.errors import LDLError
from ldl.head import FittedHead, Head, ImageHead, wanted_of
from ldl.heads.max_ent import MaxEnt
from ldl.heads.mirrored import Mirrored
from ldl.heads.scaled import Scaled
from ldl.heads.structrf import StructRF
from ldl.heads.trained import Trained
from ldl.labels import LabelSpace
from ldl.methods.opinion_pool import PoolMean, pool, pool_weights
from ldl.methods.rows import check_rows
from ldl.methods.traced import traced
from ldl.metrics.functional import kl
from ldl.options import buffer, check_options, option, options
from ldl.progress import track
from ldl.protocols import kfold
from ldl.trust.learned import check_numbers, check_shapes, check_simplex, refuse

Columns = dict[str, Tensor | None]
"""What a head may want besides features and target, where it is known."""


@options
class Pool(FittedHead):
    """Several fitted heads as one, an opinion pool (Genest & Zidek, Statistical Science 1986).

    The rows are cut into ``folds`` inner folds, whole groups where groups are known. Every member is fitted on each
    inner training part and predicts what was left out; the weights, at least 0, are those whose pool of these
    predictions has the smallest mean KL divergence, but for their ``shrinkage`` towards equal weights: few rows know
    little of them (:mod:`ldl.methods.opinion_pool`). Then every member that has a weight is fitted on all rows. One
    that has none stays as it was built. One member alone is fitted once.

    A member is handed the processes' collective and shares its own work by it.

    Args:
        members: The heads, by class name. One that learns by gradient goes into ``Trained``. None is ``StructRF``,
            ``Trained`` and ``MaxEnt``.
        mean: ``geometric``, normalised, or ``arithmetic``, with weights of sum 1; or ``multiplicative``, the geometric
            one of ratios to the mean distribution of the training rows, with weights of any sum: less than 1
            draws towards that distribution, more away from it, where all members are too cautious (Bordley, Management
            Science 1982). Predictions are raised to ``KL_FLOOR`` (1e-12) before a logarithm.
        folds: Inner folds; every member is fitted so many times, and once more.
        seed: Of the inner folds; None takes the run's.
        shrinkage: Half the squared distance from equal weights counts as much as the divergence of so many rows or,
            where groups are known, groups; 0 trusts the inner folds alone.

    Attributes:
        weights: (M,) of the members.
        base: (C,) mean distribution of the training rows, for ``multiplicative``.
        member_kl: (M,) mean KL divergence of their predictions for the inner folds' left out parts, in nats; NaN where
            it was not measured.
        pool_kl: That of the pool. Its weights were found on these rows, so that it is a little too good.
    """

    uses_value: ClassVar[bool] = True
    uses_group: ClassVar[bool] = True
    wide: ClassVar[tuple[str, ...]] = ("weights", "base")
    weights: Tensor = buffer()
    base: Tensor = buffer()
    member_kl: Tensor = buffer()
    pool_kl: Tensor = buffer()

    members: list[Head] = option(default=None)
    mean: PoolMean = "multiplicative"
    folds: int = option(default=5, least=2, most=1000)
    seed: int | None = option(default=None, least=0, most=2**32 - 1, null="the run's")
    shrinkage: float = option(default=1.0, least=0, most=1e9)

    def __post_init__(self) -> None:
        members = [StructRF(), Trained(), MaxEnt()] if self.members is None else self.members
        self.members = nn.ModuleList(members)  # type: ignore[assignment]  # it registers what it holds

    def build(self, in_features: int, labels: LabelSpace) -> None:
        """Build the members, with equal weights until fitted. Raises LDLError, naming the member where it is one's."""
        check_options(self)
        if not len(self.members):
            raise LDLError("Pool.members is empty; name one head or more")
        super().build(in_features, labels)
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

    def fit(
        self,
        features: Tensor,
        target: Tensor,
        collective: Collective,
        value: Tensor | None = None,
        group: Tensor | None = None,
    ) -> None:
        """Fit on (N, F), (N, C), and maybe values (N, ...) and groups (N,).

        Raises LDLError: too few rows or groups for the folds, or what a member refuses, with its name.
        """
        check_rows(type(self).__name__, features, target)
        columns = {"value": value, "group": group}
        base = target.double().mean(0)
        if self.mean == "multiplicative":
            self.base = base.to(self.base)
        if len(self.members) > 1:
            outside = self._predict_outside(features, target, columns, collective)
            predicted, wanted, known = (each.double().cpu().numpy() for each in (outside, target, base))
            shrinkage = self.shrinkage / (len(target) if group is None else len(group.unique()))
            weights = torch.from_numpy(pool_weights(predicted, wanted, self.mean, known, shrinkage))
            pooled = pool(outside, weights.to(outside), self.mean, base)
            self.member_kl = kl(outside, target.double()).mean(1).to(self.weights)
            self.pool_kl = kl(pooled, target.double()).mean().to(self.weights)
            self.weights = collective.broadcast(weights.to(self.weights))
        for number in track(self.used, len(self.used), "fitting members", self.shows_progress):
            with self._naming(number):
                _fit(self.members[number], features, target, columns, collective)

    def forward(self, features: Tensor) -> Tensor:
        """Pool of the members that have a weight: (..., F) to (..., C)."""
        base = self.base if self.mean == "multiplicative" else None
        if not self.used:
            assert base is not None  # only these weights may all be 0
            return base.expand(*features.shape[:-1], -1)
        predictions = torch.stack([self.members[number](features) for number in self.used])
        return pool(predictions, self.weights[self.used], self.mean, base)

    @property
    def used(self) -> list[int]:
        """Numbers of the members that have a weight; of all while a graph is recorded, when nobody knows weights."""
        return list(range(len(self.members))) if traced() else self.weights.nonzero().flatten().tolist()

    @property
    def names(self) -> list[str]:
        """The members by class, of ``Trained`` and such that of the head; numbered where several are equal."""
        found = [type(m.head if isinstance(m, Mirrored | Scaled | Trained) else m).__name__ for m in self.members]
        counts, seen = Counter(found), Counter[str]()
        for number, name in enumerate(found):
            seen[name] += 1
            found[number] = f"{name}_{seen[name]}" if counts[name] > 1 else name
        return found

    def summary(self) -> dict[str, float]:
        """Weight and inner KL of every member, and the pool's, where there is more than one."""
        if len(self.members) == 1:
            return {}
        weights = {f"weight_{name}": float(weight) for name, weight in zip(self.names, self.weights)}
        inner = {f"inner_kl_{name}": float(each) for name, each in zip(self.names, self.member_kl)}
        return {**weights, **inner, "inner_kl_pool": float(self.pool_kl)}

    def check_state(self) -> None:
        """Raise LDLError where the weights, or the base, are not on the simplex; the members check themselves."""
        check_shapes(self, {"M": len(self.members)}, weights="M", member_kl="M", pool_kl="")
        if self.mean != "multiplicative":
            check_simplex(self, "weights", self.weights)
            return
        check_shapes(self, {"C": len(self.labels)}, base="C")
        check_simplex(self, "base", self.base)
        check_numbers(self, "weights", self.weights)
        if float(self.weights.min()) < 0:
            refuse(self, "weights", f"has {float(self.weights.min()):g}, below 0")

    def _predict_outside(self, features: Tensor, target: Tensor, columns: Columns, collective: Collective) -> Tensor:
        """(M, N, C), float64: every member's prediction for every row by its copy that was fitted without it."""
        group = columns["group"]
        groups, seed = None if group is None else group.cpu().numpy(), run_seed(self.seed)
        try:
            cuts = [kfold(len(target), self.folds, fold, seed, groups=groups) for fold in range(self.folds)]
        except LDLError as error:
            raise LDLError(f"Pool.{error}") from None
        outside = target.new_empty(len(self.members), *target.shape, dtype=torch.float64)
        jobs = [(number, cut) for number in range(len(self.members)) for cut in cuts]
        for number, cut in track(jobs, len(jobs), "fitting members on inner folds", self.shows_progress):
            inside, left_out = (torch.from_numpy(rows).to(target.device) for rows in (cut.train, cut.test))
            chosen = {name: None if column is None else column[inside] for name, column in columns.items()}
            with self._naming(number):
                member = copy.deepcopy(self.members[number]).eval()
                _fit(member, features[inside], target[inside], chosen, collective)
                outside[number, left_out] = member(features[left_out]).to(outside)
        return outside

    def _place(self, number: int) -> str:
        return f"Pool.members[{number}] {type(self.members[number]).__name__}"

    @contextmanager
    def _naming(self, number: int) -> Iterator[None]:
        """Name a member in what it raises."""
        try:
            yield
        except LDLError as error:
            raise type(error)(f"{self._place(number)}: {error}") from error
        except Exception as error:
            error.add_note(f"in {self._place(number)}")
            raise


def _fit(member: Any, features: Tensor, target: Tensor, columns: Columns, collective: Collective) -> None:
    member.fit(features, target, collective, **wanted_of(member, columns))
