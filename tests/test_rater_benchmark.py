"""The benchmark of models of raters: scores, intervals, tables, files, and the competing packages."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks import raters
from benchmarks.common import rater_peers, rater_scores, rater_sets, rater_tables
from benchmarks.common.rater_scores import Predictions
from ldl.annotations.votes import SingleVotes
from ldl.labels import LabelSpace
from ldl.search.statistics import difference_interval

ORDINAL = LabelSpace.ordinal([1, 2, 3])
# Item 0 has the votes 1 and 2, item 1 the vote 3.
VOTES = SingleVotes(np.array([0, 1, 0]), np.array([0, 0, 1]), np.array([0, 2, 1]), np.array(["a", "b"]))
SHARES = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])


def test_scores_of_perfect_predictions() -> None:
    scores = rater_scores.score(Predictions(SHARES, np.eye(3)[VOTES.label]), VOTES, ORDINAL)
    zero = ("nll", "rater_error", "rater_distance", "kl", "manhattan", "wasserstein")
    assert all(scores[name] == pytest.approx(0, abs=1e-9) for name in zero)
    assert scores["accuracy"] == 0.75  # half for a tie


def test_scores_by_hand() -> None:
    """Error and distance are means over items of means over votes; the NLL is a mean over votes."""
    rated = np.array([[0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    population = np.array([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    scores = rater_scores.score(Predictions(population, rated), VOTES, ORDINAL)
    assert scores["nll"] == pytest.approx(-(math.log(0.2) + math.log(0.7) + math.log(0.3)) / 3)
    assert scores["rater_error"] == pytest.approx((1 + 0) / 2)
    assert scores["rater_distance"] == pytest.approx(((0.5 + 0.5) / 2 + 0) / 2)
    assert scores["kl"] == pytest.approx((0.5 * math.log(2) + math.log(2)) / 2)
    assert scores["manhattan"] == pytest.approx((0.5 + 1.0) / 2)
    assert scores["wasserstein"] == pytest.approx((0.25 + (0.25 + 0.5)) / 2)


def test_base_rates_are_the_mean_shares_of_the_training_items() -> None:
    predicted = rater_scores.base_rates(VOTES, np.array([0]), np.array([1]), 3)
    assert predicted.population.tolist() == [[0.5, 0.5, 0.0]] and predicted.votes.tolist() == [[0.5, 0.5, 0.0]]


def test_interval_of_a_difference_is_that_of_items(rng_seed: int = 0) -> None:
    """With one vote an item, it is the interval of a mean; with copies of each vote, it stays the same."""
    difference = np.random.default_rng(rng_seed).normal(0.3, 1, 400)
    item, zero = np.arange(400), np.zeros(400)
    mean, low, high = rater_scores.paired_difference(difference, zero, item)
    half = 1.959964 * difference.std(ddof=1) / 20
    assert (mean, low, high) == pytest.approx((difference.mean(), mean - half, mean + half), abs=1e-6)
    copied = rater_scores.paired_difference(difference.repeat(5), zero.repeat(5), item.repeat(5))
    assert copied == pytest.approx((mean, low, high))


def test_gains_are_sorted_by_training_votes() -> None:
    item, ours = np.array([1.0, 1.0, 1.0, 1.0]), np.array([0.9, 0.8, 0.5, 0.1])
    rows = rater_scores.gain_by_votes(ours, item, np.array([0, 1, 1, 2]), np.array([0, 5, 60]))
    assert [(row["least"], row["votes"]) for row in rows] == [(0, 1), (1, 2), (40, 1)]
    assert [row["gain"] for row in rows] == pytest.approx([0.1, 0.35, 0.9])


def test_json_of_csc_is_read_as_released() -> None:
    text = '{"Ann0": {"Gender": "Male", "Age": "1,2",\n},\n}'
    assert json.loads(rater_sets.without_trailing_commas(text)) == {"Ann0": {"Gender": "Male", "Age": "1,2"}}


def scored(model: str, seed: int, nll: list[float]) -> dict[str, Any]:
    return {"what": "scores", "set": "POPQUORN", "model": model, "seed": seed, "nll": nll}


def test_differences_average_seeds_first_and_are_corrected() -> None:
    rows = [
        scored("item", 0, [1.2, 1.3, 1.1]),
        scored("bias", 0, [1.0, 1.2, 1.05]),
        scored("bias", 1, [1.1, 1.2, 1.05]),
    ]
    low, high = difference_interval(np.array([1.05, 1.2, 1.05]), np.array([1.2, 1.3, 1.1]))
    text, p = rater_tables.difference(rows, "POPQUORN", "bias", "item")
    assert text == f"-0.1000 ({low:+.4f} to {high:+.4f})" and 0 < float(p) < 1
    assert rater_tables.difference(rows, "POPQUORN", "bias", "bias") == ("", "")
    assert rater_tables.difference(rows, "POPQUORN", "confusion", "item") == ("", "")


def test_a_published_split_takes_its_interval_from_items() -> None:
    rows = [scored("item", 0, [1.2]), scored("bias", 0, [1.0])]
    assert rater_tables.difference(rows, "POPQUORN", "bias", "item") == ("-0.2000", "")
    key = {"what": "difference", "set": "POPQUORN", "model": "bias", "against": "item", "seeds": 1}
    rows.append({**key, "mean": -0.2, "low": -0.3, "high": -0.1})
    assert rater_tables.difference(rows, "POPQUORN", "bias", "item")[0] == "-0.2000 (-0.3000 to -0.1000)"
    assert rater_tables.difference(rows, "POPQUORN", "item", "bias")[0] == "+0.2000 (+0.1000 to +0.3000)"


@pytest.mark.parametrize("block", rater_tables.TABLES)
def test_tables_are_those_of_the_stored_results(block: str) -> None:
    page = Path(__file__).parents[1] / "docs" / "results" / "raters.md"
    table = rater_tables.TABLES[block](json.loads(raters.STORED.read_text(encoding="utf-8"))).strip()
    assert f"<!-- begin {block} -->\n{table}\n<!-- end {block} -->" in page.read_text(encoding="utf-8"), (
        "run python benchmarks/raters.py report --page docs/results/raters.md"
    )


def made_up_votes(items: int = 40) -> pd.DataFrame:
    """Return votes of four raters: labels follow a word of the text, and the last rater always votes 1."""
    words = ["kind", "rude"]
    rows = [
        (f"i{item}", f"r{rater}", item % 2 if rater < 3 else 1, f"{words[item % 2]} {item}", "f")
        for item in range(items)
        for rater in range(4)
    ]
    table = pd.DataFrame(rows, columns=["item", "rater", "label", "text", "gender"])
    return table.sample(frac=1, random_state=0)


def test_predictions_of_all_folds_are_put_into_the_order_of_the_votes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stored predictions that name the vote, fold by fold, name it after pooling too."""
    pytest.importorskip("wordllama", reason="needs wordllama (ldl[text])")
    made_up = rater_sets.RaterSet(made_up_votes, ("text",), "nominal", ("gender",))
    monkeypatch.setitem(rater_sets.SETS, "made up", made_up)
    study = raters.Study("made up", tmp_path)
    (tmp_path / "predictions").mkdir()
    for fold, sample in enumerate(study.samples):
        test = sample.votes_on(sample.split.test)
        counts = test.counts(len(sample.split.test), 2)
        predicted = Predictions(counts / counts.sum(1, keepdims=True), np.eye(2)[test.label])
        np.savez(tmp_path / "predictions" / f"made up_CoNAL_0_{fold}.npz", **predicted._asdict(), chosen="{}")
    pooled, votes = study.pooled("CoNAL", 0)
    assert len(votes.label) == 160 and (pooled.votes.argmax(1) == votes.label).all()
    assert (pooled.population[votes.item, votes.label] > 0).all()
    assert all(value == pytest.approx(0, abs=1e-9) for value in study.scores("CoNAL", 0)["nll"])


@pytest.mark.slow
def test_every_result_of_made_up_votes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From files to tables, with the command line of ldl."""
    pytest.importorskip("wordllama", reason="needs wordllama (ldl[text])")
    made_up = rater_sets.RaterSet(made_up_votes, ("text",), "nominal", ("gender",))
    monkeypatch.setitem(rater_sets.SETS, "made up", made_up)
    monkeypatch.setitem(raters.GROUPED, "made up", ("gender",))
    monkeypatch.setattr(rater_sets, "FOLDS", 2)
    models = ("item", "features", "bias", "confusion")
    monkeypatch.setattr(raters, "MODELS", {model: raters.MODELS[model] for model in models})
    rows = [{**key, **run()} for key, run in raters.jobs_of("made up", tmp_path, 1, peers=False)]
    [item, bias] = (rater_tables.over_seeds(rows, "made up", model, "nll") for model in ("item", "bias"))
    assert len(bias) == 2 and bias.mean() < item.mean()
    for write in rater_tables.TABLES.values():
        assert "nan" not in write(rows)
    [raters_row] = rater_tables.select(rows, what="raters")
    assert min(raters_row["held_out"]) > 0
    [groups] = rater_tables.select(rows, what="groups")
    assert [row["votes"] for row in groups["rows"]] == [160]


@pytest.mark.slow
@pytest.mark.parametrize("name", rater_peers.PEERS)
def test_competing_packages_learn_who_inverts_labels(name: str) -> None:
    pytest.importorskip("skactiveml" if name != "CoNAL" else "crowdkit.learning", reason="needs ldl[peers]")
    rng = np.random.default_rng(0)
    features = rng.normal(size=(300, 4)).astype(np.float32)
    item, rater = np.repeat(np.arange(300), 3), np.tile([0, 1, 2], 300)
    label = (features[item, 0] > 0).astype(int)
    label = np.where(rater == 2, 1 - label, label)
    votes = rater_peers.Votes(features, SingleVotes(item, rater, label, np.arange(3)), 2)
    tuned = rater_peers.tune(name, votes, votes, 0, [rater_peers.Setting(3e-3, 10)])
    rated = tuned.peer.predict(features, item, rater)
    assert np.allclose(rated.sum(1), 1, atol=1e-5) and (rated.argmax(1) == label).mean() > 0.8
    assert rater_peers.nll_of_votes(tuned.peer, votes) == pytest.approx(tuned.nll, abs=1e-6)
    population = rater_peers.population(tuned.peer, features[:5], np.array([0, 2]))
    assert np.allclose(
        population,
        (
            tuned.peer.predict(features, np.arange(5), np.zeros(5, int))
            + tuned.peer.predict(features, np.arange(5), np.full(5, 2))
        )
        / 2,
        atol=1e-5,
    )
