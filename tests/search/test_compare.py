"""``--stage compare``: from a file of candidates to a configuration that trains, and on where it stopped."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from distributed import LocalCluster
from fakes.inline_executor import run_inline
from fakes.simulated_raters import confusion_of, simulate_items, simulate_votes

from ldl.command import main
from ldl.command.configs import find_config
from ldl.heads import AAKNN
from ldl.jobs.store import Store
from ldl.progress import stop
from ldl.search import candidates as made
from ldl.search.statistics import against_best

pytestmark = pytest.mark.usefixtures("blank")

QUICK = {"inner_folds": 1, "val_fraction": 0.2}
TWO = ["--data.folds=2"]
QUIET = ["--trainer.enable_progress_bar=false", "--wandb.mode=disabled"]
CANDIDATES = {
    "AA-kNN": {"run": "tabular/aaknn", "grid": {"model.head.neighbours": [3, 10, 500], "data.scaling": ["standard"]}},
    "MaxEnt": {"run": "tabular/maxent", "options": {"model.head.l2": 0.001, "model.head.iterations": 100}},
    "trees": {
        "run": "tabular/structrf",
        "options": {"model.head.trees": 25},
        "grid": {"model.head.min_leaf": [1, 4]},
        "tuning": {"model.head.trees": 3},
    },
}
Compare = Callable[..., dict]


def targets(kind: str, features: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Distributions that are smooth in the features, or jump with two of them."""
    if kind == "trees":
        corner = (features[:, 0] > 0).astype(int) + 2 * (features[:, 1] > 0.3)
        return 0.8 * np.eye(4)[(corner * 3) % 4] + 0.05
    grown = np.exp(features @ rng.normal(size=(features.shape[1], 4)))
    return grown / grown.sum(1, keepdims=True)


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    def make(kind: str = "smooth", seed: int = 0, size: int = 90) -> Path:
        rng = np.random.default_rng(seed)
        features = rng.normal(size=(size, 4))
        np.savez(tmp_path / "table.npz", features=features, labels=targets(kind, features, rng))
        return tmp_path / "table.npz"

    return make


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Compares candidates on a table; returns comparison.json."""

    def go(path: Path | None, candidates: dict = CANDIDATES, *more: str, **others: object) -> dict:
        file = tmp_path / "compare.yaml"
        file.write_text(yaml.safe_dump({"candidates": candidates, "choose": QUICK, **others}, sort_keys=False))
        place = ["--run_dir", str(tmp_path / "run")]
        place += [] if path is None else ["--data.path", str(path), "--data.folds=3"]
        main(["--stage", "compare", "-c", str(file), *place, *QUIET, *more])
        return json.loads((tmp_path / "run" / "comparison.json").read_text())

    return go


def lines(run: Path) -> list[dict]:
    return Store(run / "jobs").rows


def refusal(capsys: pytest.CaptureFixture[str], act: Callable[[], object]) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        act()
    said = capsys.readouterr().err.strip().splitlines()
    assert ended.value.code == 2 and said[-1].startswith("error: ")
    return said[-1]


def test_the_recommendation_is_the_run_that_it_names(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compare(table("smooth"), {name: CANDIDATES[name] for name in ("AA-kNN", "MaxEnt")}, *TWO)
    assert found["recommended"] == found["best"] == "MaxEnt"
    by_name = {candidate["name"]: candidate for candidate in found["candidates"]}
    assert list(by_name) == ["MeanPredictor", "AA-kNN", "MaxEnt"]
    assert by_name["MeanPredictor"]["kl"]["mean"] > 5 * by_name["MaxEnt"]["kl"]["mean"]
    said, config = capsys.readouterr().out, tmp_path / "run" / "recommended.yaml"
    assert "recommended: MaxEnt" in said and f"-c {config}" in said
    assert "| MaxEnt | " in (tmp_path / "run" / "table.md").read_text()
    assert {path.name for path in (tmp_path / "run").iterdir()} == {
        *(".ldl", "jobs", "comparison.json", "ranks.png", "recommended.yaml", "table.md")
    }
    main(["-c", str(config), *QUIET, "--run_dir", str(tmp_path / "first")])
    results = json.loads((tmp_path / "first" / "results.json").read_text())
    assert results["mean"] == by_name["MaxEnt"]["folds"][0]["measures"]


@pytest.mark.slow
def test_real_processes_choose_among_trees(compare: Compare, table: Callable[..., Path], tmp_path: Path) -> None:
    found = compare(table("trees"), {name: CANDIDATES[name] for name in ("MaxEnt", "trees")}, "--jobs=2")
    assert found["recommended"] == "trees" and found["setting"]["model.head.min_leaf"] in (1, 4)
    config = yaml.safe_load((tmp_path / "run" / "recommended.yaml").read_text())
    assert config["model"]["head"]["init_args"]["trees"] == 25


def test_it_resumes(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path, run, one, fits, fit = table(), tmp_path / "run", grid(neighbours=[3, 10]), [], made.fit_and_test

    def counted(*arguments: object) -> object:
        fits.append(1)
        if len(fits) == 5:
            stop.signal = 2
        return fit(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(made, "fit_and_test", counted)
    with pytest.raises(SystemExit) as ended:
        compare(path, one, *TWO)
    assert ended.value.code == 130
    last = capsys.readouterr().err.strip().splitlines()[-1]
    assert last == f"stopped by SIGINT; the same command with --run_dir {run} resumes it"
    before = lines(run)
    assert len(before) == 2 and not (run / "comparison.json").exists()
    resumed = compare(path, one, *TWO)
    assert lines(run)[:2] == before
    shutil.rmtree(run)
    fits[:] = [1] * 5
    whole = compare(path, one, *TWO)
    for mine, its in zip(resumed["candidates"], whole["candidates"], strict=True):
        assert mine | {"seconds": 0} == its | {"seconds": 0}


@pytest.mark.slow
def test_what_changed_is_measured_anew(compare: Compare, table: Callable[..., Path], tmp_path: Path) -> None:
    def measured() -> list[str]:
        return [row["candidate"] for row in lines(tmp_path / "run") if row["fold"] != "all"]

    one, other = ({"MaxEnt": {"run": "tabular/maxent", "options": {"model.head.l2": l2}}} for l2 in (0.001, 0.1))
    compare(table(), one, *TWO)
    compare(table(), other, *TWO)
    assert measured() == ["MeanPredictor", "MaxEnt"] * 2 + ["MaxEnt"] * 2
    compare(table(seed=1), one, *TWO)
    assert len(measured()) == 10


@pytest.mark.slow
def test_dask_workers_read_what_has_changed(compare: Compare, table: Callable[..., Path]) -> None:
    own = {"processes": False, "dashboard_address": None, "silence_logs": logging.CRITICAL}
    with LocalCluster(n_workers=1, threads_per_worker=1, **own) as cluster:
        found = set()
        for seed, l2 in ((0, 0.001), (0, 0.1), (1, 0.1)):
            entry = {"run": "tabular/maxent", "options": {"model.head.l2": l2}}
            more = ["--scheduler", cluster.scheduler_address, *TWO]
            found.add(compare(table(seed=seed), {"head": entry}, *more)["candidates"][1]["kl"]["mean"])
    assert len(found) == 3


def test_a_candidate_that_fails_is_in_the_table(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **more: object) -> None:
        raise ValueError("no\nneighbours")

    monkeypatch.setattr(AAKNN, "fit", fail)
    found = compare(table(), {"AA-kNN": "tabular/aaknn", "MaxEnt": CANDIDATES["MaxEnt"]}, *TWO)
    assert found["recommended"] == "MaxEnt"
    assert found["candidates"][1]["error"] == "fold 0: ValueError: no neighbours"
    assert "| AA-kNN | failed | " in (tmp_path / "run" / "table.md").read_text()


@pytest.mark.slow
def test_groups_and_options_of_the_command_line(
    compare: Compare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups stay together, and an option that the command line fixes leaves the grid; in several processes."""
    run_inline(monkeypatch)
    rng = np.random.default_rng(0)
    features, group = rng.normal(size=(60, 3)), np.arange(60) // 5
    value = np.clip(np.round(5 + 2 * features[:, 0]), 0, 10)
    np.savez(tmp_path / "values.npz", features=features, value=value, group=group)
    grid = {"data.init_args.scaling": ["none", "standard"], "model.head.neighbours": [5, 10]}
    candidates = {
        "AA-kNN": {"run": "tabular/aaknn", "grid": grid},
        "mean": {"run": "tabular/structrf", "options": {"model.head": "MeanPredictor"}},
    }
    more = ["--data", "TabularValues", "--data.scaling=none", "--jobs=2", *TWO]
    found = compare(tmp_path / "values.npz", candidates, *more)
    assert found["protocol"] == "group_exclusive" and found["leak"] == 0
    assert [candidate["name"] for candidate in found["candidates"]] == ["mean", "AA-kNN"]
    for fold in found["candidates"][1]["folds"]:
        assert list(fold["setting"]) == ["model.head.neighbours"] and fold["measures"]["mae"] > 0


def grid(**values: object) -> dict:
    """A candidate with the head's options to choose from."""
    return {"a": {"run": "tabular/aaknn", "grid": {f"model.head.{name}": value for name, value in values.items()}}}


ONE = {"a": "tabular/aaknn"}


def test_another_stage_is_refused(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refusal(capsys, lambda: compare(table(), ONE, "--stage", "crossval"))
    assert "--stage is crossval" in line and not (tmp_path / "run").exists()


def test_refusals_of_files(
    compare: Compare, table: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, one = table(), {"AA-kNN": "tabular/aaknn"}
    many = refusal(capsys, lambda: compare(path, CANDIDATES, choose={"inner_folds": 80}))
    assert "folds 80 must be in 2..60" in many
    digits = tmp_path / "digits.yaml"
    digits.write_text("candidates: {a: digits_softmax}")
    said = refusal(capsys, lambda: main(["--stage", "compare", "-c", str(digits), "--data.turns=1"]))
    assert "candidate a: RotatedDigits gives inputs of shape" in said and "takes rows of features" in said
    assert "and here is none" in refusal(capsys, lambda: main(["--stage", "compare", "--data.path", str(path)]))
    Store(tmp_path / "run" / "jobs").get({"of": "TabularLDL other.npz"}, dict)
    (tmp_path / "run" / ".ldl").touch()
    assert "has the comparison of TabularLDL other.npz" in refusal(capsys, lambda: compare(path, one))
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "results.json").touch()
    assert "has results.json, which no run of ldl wrote" in refusal(capsys, lambda: compare(path, one))


def write_votes(folder: Path, rows: int = 60) -> list[str]:
    """A table of features, and votes of five raters on each row; returns the options that name them."""
    features, truth = simulate_items(rows, sharpness=2.0)
    votes, _ = simulate_votes(confusion_of(0.9, 0.9, 0.6, 0.0, 0.0), truth, rows, 4)
    table = pd.DataFrame(features, columns=["a", "b"]).assign(item=np.arange(rows))
    table.to_csv(folder / "table.csv", index=False)
    labels = np.array(["x", "y", "z"])[votes.label]
    frame = pd.DataFrame({"item": votes.item, "rater": votes.names[votes.rater], "label": labels})
    frame.to_csv(folder / "votes.csv", index=False)
    return ["--data.path", str(folder / "table.csv"), "--data.votes", str(folder / "votes.csv"), *TWO]


def with_head(config: str, run: str = "tabular/maxent") -> dict:
    """The candidates of a shipped comparison, with a head that is fitted in less time."""
    candidates = yaml.safe_load(Path(find_config(config)).read_text())["candidates"]
    return {name: {**candidate, "run": run} for name, candidate in candidates.items()}


def test_targets_of_votes_are_compared_on_the_votes(
    compare: Compare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = compare(None, with_head("compare/targets"), *write_votes(tmp_path))
    entries = {entry["name"]: entry for entry in content["candidates"]}
    assert set(entries) == {"MeanPredictor", "shares", "majority", "dawid_skene"}
    kl, nll = (
        {name: np.array([fold["measures"][metric] for fold in entry["folds"]]) for name, entry in entries.items()}
        for metric in ("kl", "vote_nll")
    )
    assert len({round(float(loss.mean()), 6) for loss in kl.values()}) == 4
    # All are tested on the same votes, so that the corrected tests of both metrics are one.
    entropy = nll["shares"] - kl["shares"]
    for name, entry in entries.items():
        np.testing.assert_allclose(nll[name] - kl[name], entropy, atol=1e-5)
        assert entry["vote_nll"]["mean"] == pytest.approx(nll[name].mean())
    expected = against_best(nll, "vote_nll", ratio=1.0)
    tests = {name: np.nan if entry["p"] is None else entry["p"] for name, entry in entries.items()}
    assert tests == pytest.approx(expected, abs=1e-3, nan_ok=True)
    assert "vote NLL" in capsys.readouterr().out and "| vote NLL |" in (tmp_path / "run" / "table.md").read_text()
    assert "given the rater" not in (tmp_path / "run" / "table.md").read_text()  # no candidate has a model of raters
    assert yaml.safe_load((tmp_path / "run" / "recommended.yaml").read_text())["data"]["init_args"]["target"] in entries


SOFTMAX = {
    "model": {"head": "Softmax", "optimizer": {"class_path": "torch.optim.Adam", "init_args": {"lr": 0.1}}},
    "data": "TabularLDL",
    "trainer": {"max_epochs": 3},
}


def test_models_of_raters_are_compared_on_the_votes_of_raters(
    compare: Compare, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = {"items": {"run": SOFTMAX}, "raters": {"run": SOFTMAX, "options": {"model.raters": "bias"}}}
    content = compare(None, runs, *write_votes(tmp_path), "--data.val_fraction=0.2")
    entries = {entry["name"]: entry for entry in content["candidates"]}
    nll = {
        name: np.array([fold["measures"]["rater_nll"] for fold in entry["folds"]]) for name, entry in entries.items()
    }
    expected = against_best(nll, "rater_nll", ratio=1.0)
    for name, entry in entries.items():
        summary, p = entry["rater_nll"], expected[name]
        assert summary["mean"] == pytest.approx(nll[name].mean())
        assert (summary["p"] is None) == np.isnan(p) and (summary["p"] is None or summary["p"] == pytest.approx(p))
    pooled = [fold["measures"]["vote_nll_weighted"] for fold in entries["raters"]["folds"]]
    assert np.abs(nll["raters"] - pooled).min() > 1e-4
    header = (
        "| vote NLL | p against the best | rank | seconds a fold | vote NLL given the rater | p against the best of"
    )
    table = (tmp_path / "run" / "table.md").read_text()
    assert header in table and "predicts all raters alike" in table
    capsys.readouterr()


def test_targets_of_counts_need_no_raters(compare: Compare, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    features, truth = simulate_items(40, sharpness=2.0)
    counts = np.random.default_rng(0).multinomial(5, truth)
    table = pd.DataFrame(np.hstack([features, counts]), columns=["a", "b", "label:x", "label:y", "label:z"])
    table.to_csv(tmp_path / "table.csv", index=False)
    compare(tmp_path / "table.csv", with_head("compare/targets_of_counts"), *TWO)
    assert {row["candidate"] for row in lines(tmp_path / "run")} == {"MeanPredictor", "shares", "majority"}
    options = ["--data.path", str(tmp_path / "table.csv"), *TWO, *QUIET]
    message = refusal(capsys, lambda: main(["--stage", "compare", "-c", "compare/targets", *options]))
    assert "candidate dawid_skene: data.target dawid_skene needs the rater of each vote" in message
