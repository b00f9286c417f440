"""All measures: the tables of ldl, and those of plugins."""

from __future__ import annotations

from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.metrics import functional
from ldl.metrics.classes import CLASS_MEASURES
from ldl.metrics.intervals import interval_measures
from ldl.metrics.measure import Measure
from ldl.metrics.ordinal import line_measures
from ldl.metrics.value import value_measures

DISTRIBUTION_METRICS = {
    measure.name: measure
    for measure in (
        Measure("kl", functional.kl),
        Measure("chebyshev", functional.chebyshev),
        Measure("clark", functional.clark),
        Measure("canberra", functional.canberra),
        Measure("cosine", functional.cosine, higher_is_better=True),
        Measure("intersection", functional.intersection, higher_is_better=True),
        Measure("euclidean", functional.euclidean),
        Measure("sorensen", functional.sorensen),
        Measure("squared_chi2", functional.squared_chi2),
        Measure("fidelity", functional.fidelity, higher_is_better=True),
    )
}
"""The ten measures between distributions, by the names they have in ``results.json``."""

_registered: dict[str, Measure] = {}


def register(measure: Measure) -> None:
    """Measure this too, wherever labels have such: in logs, ``results.json`` and tables. For plugins.

    Raises LDLError where there is another measure of this name.
    """
    if measure.name in _registered or measure.name in DISTRIBUTION_METRICS:
        raise LDLError(f"there is a measure {measure.name!r} already; give yours another name")
    _registered[measure.name] = measure


def measures(labels: LabelSpace, maps: bool = False) -> list[Measure]:
    """The measures that labels have; with ``maps`` those of an output for every pixel.

    These have none of classes, and none that need all rows: they would keep all pixels of a data set.
    Raises LDLError where a registered measure has the name of one of ldl's.
    """
    two = labels.kind == "nominal" and len(labels) == 2
    tables = {
        "distribution": list(DISTRIBUTION_METRICS.values()),
        "class": list(CLASS_MEASURES) if two and not maps else None,
        "value": value_measures(labels) if labels.has_values else None,
        "interval": interval_measures(labels) if labels.has_values and not maps else None,
        "set": interval_measures(labels) if not labels.has_values and not maps else None,
        "line": line_measures(labels) if labels.kind == "ordinal" and not maps else None,
    }
    known = [measure for table in tables.values() for measure in table or ()]
    own = [measure for measure in _registered.values() if tables[measure.of] is not None]
    if taken := {measure.name for measure in known} & {measure.name for measure in own}:
        raise LDLError(f"there is a measure {min(taken)!r} of these labels already; rename the registered one")
    return known + own
