"""Candidates of a comparison are trained on the same rows, or the comparison names the one that is not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from ldl.command.arguments import tokenize
from ldl.command.command_line import Command, parse_anew
from ldl.errors import LDLError
from ldl.search.candidates import RunCandidate, identities, make_candidates, open_data
from ldl.search.comparison import read_comparison

ONE = {"a": "tabular/aaknn"}
LDFL = {"a": {"run": {"model": {"head": "LDFL"}}}}
OTHER_LABELS = {"a": {"run": "tabular/aaknn", "options": {"data.label_values": [1, 2, 4, 9]}}, "b": "tabular/maxent"}
SHORT = {"a": {"run": "tabular/aaknn", "options": {"trainer.limit_test_batches": 1}}, "b": "tabular/maxent"}
OTHER_FOLDS = {"a": {"run": "tabular/aaknn", "options": {"data.fold_seed": 1}}, "b": "tabular/maxent"}
WRONG: dict[str, tuple[dict, list[str], list[str]]] = {
    "unknown head": (LDFL, [], ["candidate a: ", "'LDFL'", "did you mean 'LDLF'"]),
    "other folds": (OTHER_FOLDS, [], ["other targets or folds"]),
    "other instances": (SHORT, [], ["candidate a: trainer.limit_test_batches leaves instances out"]),
    "other labels": (OTHER_LABELS, [], ["other targets or folds"]),
    "the best": (ONE, ["--select", "best"], ["leave --select best out"]),
}


def candidates_of(folder: Path, entries: dict, *words: str) -> tuple[list[RunCandidate], dict[str, str]]:
    """Return the candidates of a file, and the identity of each."""
    rng = np.random.default_rng(0)
    np.savez(folder / "table.npz", features=rng.normal(size=(40, 3)), labels=rng.dirichlet(np.ones(4), 40))
    (folder / "compare.yaml").write_text(yaml.safe_dump({"candidates": entries}, sort_keys=False))
    data = ["--data.path", str(folder / "table.npz"), "--data.folds=2", *words]
    file = read_comparison(Command(tokenize(["--stage", "compare", "-c", str(folder / "compare.yaml"), *data])))
    candidates = make_candidates(file)
    return candidates, identities(candidates, file.selection)


@pytest.mark.parametrize("case", WRONG)
def test_mistakes_are_named(case: str, tmp_path: Path) -> None:
    entries, options, words = WRONG[case]
    with pytest.raises(LDLError) as raised:
        candidates_of(tmp_path, entries, *options)
    assert all(word in str(raised.value) for word in words), raised.value


def test_the_mean_predictor_comes_first_and_identities_follow_the_options(tmp_path: Path) -> None:
    first, before = candidates_of(tmp_path, ONE)
    assert [candidate.name for candidate in first] == ["MeanPredictor", "a"]
    assert first[0].open({}, 0) is first[1].open({}, 0)  # read once
    other = {"a": {"run": "tabular/aaknn", "options": {"model.head.neighbours": 3}}}
    candidates, after = candidates_of(tmp_path, other)
    assert candidates[1].value({}, "model.head.init_args.neighbours") == 3
    assert before["MeanPredictor"] == after["MeanPredictor"] and before["a"] != after["a"]
    assert candidates_of(tmp_path, other, "--trainer.enable_progress_bar=false")[1] == after


def test_nothing_is_held_out_to_calibrate(tmp_path: Path) -> None:
    """The default run of a table holds out a tenth; a comparison does only if a share is given."""
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "t.npz", features=rng.normal(size=(600, 3)), labels=rng.dirichlet(np.ones(4), 600))
    words = ["-c", "tabular/aaknn", f"--data.path={tmp_path / 't.npz'}"]
    opened = [open_data(parse_anew([*words, *more])) for more in ([], ["--data.val_fraction=0.2"])]
    assert [len(data.split.val) for data in opened] == [0, 108]
    data = parse_anew(words).instantiate("data")
    data.setup()
    assert len(data.split.val) == 49
