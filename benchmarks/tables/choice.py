"""A method of the tabular benchmark on the folds of one set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from benchmarks.common.folds import inputs_of, mean_measures
from benchmarks.tables.columns import Column
from benchmarks.tables.methods import Method, fit
from ldl.comparison.choice import Candidate, Setting
from ldl.data import LDLDataModule, TabularLDL
from ldl.data.tables.scaling import Scaling
from ldl.heads import Pool
from ldl.metrics.functional import kl

MEMBER_KL = "kl of"
"""How the names of the measures of a pool's members begin."""


@dataclass(frozen=True)
class OnSet(Candidate):
    """A method on a set, from one seed.

    Attributes:
        column: The set, and the protocol of its folds.
        method: The method.
        seed: Of everything random.
    """

    column: Column
    method: Method
    seed: int

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.method.name

    @cached_property
    def settings(self) -> list[Setting]:  # type: ignore[override]
        return self.method.settings()

    def open(self, setting: Setting, fold: int) -> LDLDataModule:
        return open_fold(self.column, setting.get("scaling", self.method.scaling), fold)

    def score(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> dict[str, float]:
        """The ten measures, means over the test rows; of a pool, the KL of every member that has a weight, too."""
        arguments = {name: value for name, value in setting.items() if name != "scaling"}
        arguments |= self.method.tuning if choosing else {}
        model = fit(self.method, arguments, data, self.seed)
        inputs, true = inputs_of(data)[data.split.test], data.columns["target"][data.split.test].double()
        measures = mean_measures(model(inputs), true)
        if isinstance(model, Pool):
            for number in model.used:
                member = kl(model.members[number](inputs).double(), true)
                measures[f"{MEMBER_KL} {model.names[number]}"] = float(member.mean())
        return measures


@lru_cache(maxsize=4)
def open_fold(column: Column, scaling: Scaling, fold: int) -> TabularLDL:
    """The set, cut and scaled; kept, since a grid has more settings than scalings."""
    data = TabularLDL(path=column.path, protocol=column.protocol, scaling=scaling, fold=fold, val_fraction=0.0)
    data.setup()
    return data
