"""Structured random forests (Chen et al. 2018): every table and figure."""

from __future__ import annotations

from benchmarks.common.items import Item, Paper
from benchmarks.structrf import figure4, tables
from benchmarks.structrf.attempts import starts, ways
from benchmarks.structrf.published import TABLES

YEAST = tuple(tables.table_of(name) for name in TABLES if name.startswith("Yeast"))
PAPER = Paper(
    "structrf",
    "Structured Random Forest",
    (
        Item(name="Table 1", shows="Examples, features and labels of the sets", measure=tables.sizes),
        Item(name="Table 2", shows="Formulae of six measures", measure=tables.formulae),
        *YEAST,
        tables.table_of("Natural_Scene", ways),
        tables.table_of("SJAFFE", starts),
        tables.table_of("SBU_3DFE"),
        tables.table_of("Movie", starts),
        Item(name="Section 4.4", shows="Which method is better", measure=tables.orders),
        Item(name="Figure 4", shows="x", protocol=figure4.PROTOCOL, measure=figure4.figure_4),
        Item(name="Table 19", shows="StructRF on Movie by further measures", measure=tables.further_measures),
    ),
)
