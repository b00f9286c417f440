"""A method of the tabular benchmark on the folds of one set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from benchmarks.tables.columns import Column
from benchmarks.tables.methods import Method, predict
from ldl.comparison.choice import Candidate, Setting
from ldl.data import LDLDataModule, TabularLDL
from ldl.data.tables.scaling import Scaling
from ldl.metrics import DISTRIBUTION_METRICS


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
        """The ten measures, means over the test rows."""
        arguments = {name: value for name, value in setting.items() if name != "scaling"}
        arguments |= self.method.tuning if choosing else {}
        rows = data.split.test
        predicted = predict(self.method, arguments, data, rows, self.seed).double()
        true = data.columns["target"][rows].double()
        return {name: float(measure.function(predicted, true).mean()) for name, measure in DISTRIBUTION_METRICS.items()}


@lru_cache(maxsize=4)
def open_fold(column: Column, scaling: Scaling, fold: int) -> TabularLDL:
    """The set, cut and scaled; kept, since a grid has more settings than scalings."""
    data = TabularLDL(path=column.path, protocol=column.protocol, scaling=scaling, fold=fold, val_fraction=0.0)
    data.setup()
    return data
