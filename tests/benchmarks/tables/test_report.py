"""Tables of the tabular benchmark: what is averaged, and what is bold."""

from __future__ import annotations

import numpy as np

from benchmarks.tables.report import folds_of, full_tables, leaders, ranks, summary
from ldl.metrics import DISTRIBUTION_METRICS


def test_seeds_are_averaged_before_folds_are_compared() -> None:
    def cell(method: str, seed: int, fold: int, value: float) -> dict:
        measures = dict.fromkeys(DISTRIBUTION_METRICS, value)
        return {"set": "s", "method": method, "seed": seed, "fold": fold, "measures": measures}

    cells = [cell("a", seed, fold, seed + 10 * fold) for seed in range(3) for fold in range(2)]
    cells += [cell("b", 0, fold, 100.0) for fold in range(2)]
    np.testing.assert_allclose(folds_of(cells, "s", "a", "kl"), [1, 11])
    names, table = ranks(cells, ["s"], ["a", "b", "never run"])
    assert names == ["a", "b"] and table.tolist() == [[1, 2]]
    text = full_tables(cells, ["s"], ["a", "b", "never run"], "the protocol")
    assert "| a | **6.0000 ± 7.0711** (3) |" in text and "± 0.0000 |" in text and "never run | " in text


def test_bold_is_what_the_corrected_test_does_not_tell_from_the_best() -> None:
    best = np.linspace(1, 2, 10)
    gaps = np.tile([-1.0, 1.0], 5)
    # Its p is .009 of independent folds and .060 corrected, which counts twice beside a rival of whom less is known.
    near, wild = best + gaps + 1.04, best + 9 * gaps + 2
    assert leaders({"best": best, "near": near}, "kl") == {"best"}
    assert leaders({"best": best, "near": near, "far": near + 5}, "kl") == {"best"}
    assert leaders({"best": best, "near": near, "wild": wild}, "kl") == {"best", "near", "wild"}
    assert leaders({"best": -best, "near": -near, "wild": -wild}, "cosine") == {"best", "near", "wild"}
    assert leaders({"best": best, "few": best[:9]}, "kl") == leaders({"best": best, "absent": best[:0]}, "kl") == set()
    assert leaders({"best": best[:1], "other": near[:1]}, "kl") == leaders({}, "kl") == set()
    cells = [
        {"set": name, "method": method, "seed": 0, "fold": fold, "measures": {"kl": value}}
        for name, method, values in (("s", "best", best), ("s", "near", near), ("alone", "near", near))
        for fold, value in enumerate(values)
    ]
    sets = ["s", "never run", "alone"]
    rows = [line.split(" | ") for line in summary(cells, sets, ["best", "near"], "kl", "Folds.").splitlines()]
    assert rows[-4] == ["| kl", "s", "alone |"]
    assert [[cell.startswith("**") for cell in row[1:]] for row in rows[-2:]] == [[True, False], [False, False]]
