"""Quick methods are the methods of the configuration, at small sizes."""

from __future__ import annotations

from benchmarks.tables.methods import Method
from benchmarks.tables.quick import quickened


def test_sizes_are_small_at_any_depth_and_the_rest_stays() -> None:
    members = [
        {"class_path": "StructRF", "init_args": {"trees": 300, "features": 0.1}},
        {"class_path": "BoostedTrees"},
        {"class_path": "Trained", "init_args": {"head": {"class_path": "LDLF", "init_args": {"trees": 3}}, "lr": 0.1}},
    ]
    pool = quickened(Method("pool", "Pool", {"members": members, "mean": "arithmetic"}))
    assert pool.init_args == {
        "folds": 2,
        "mean": "arithmetic",
        "members": [
            {"class_path": "StructRF", "init_args": {"trees": 5, "features": 0.1}},
            {"class_path": "BoostedTrees", "init_args": {"rounds": 5}},  # its trees are no number
            {
                "class_path": "Trained",
                "init_args": {
                    "head": {"class_path": "LDLF", "init_args": {"trees": 3, "iterations": 10}}, "lr": 0.1, "epochs": 2,
                },
            },
        ],
    }  # fmt: skip
    assert members[0]["init_args"] == {"trees": 300, "features": 0.1}


def test_the_first_setting_is_left_and_a_class_that_is_missing_is_no_failure_yet() -> None:
    grid = {"neighbours": [5, 10], "scaling": ["none", "standard"]}
    made = quickened(Method("x", "no.such.Class", {"trees": 9, "a": 1}, grid, {"trees": 7}, {"epochs": 100, "lr": 0.1}))
    assert made.settings() == [{"neighbours": 5, "scaling": "none"}] and made.tuning == {}
    assert made.init_args == {"trees": 5, "a": 1} and made.training == {"epochs": 2, "lr": 0.1}
