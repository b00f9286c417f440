"""The tables of the page about models of raters, from stored results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.common.rater_peers import PEERS
from ldl.jobs.store import Result
from ldl.reports.files import markdown
from ldl.search.statistics import difference_interval, p_value

TITLES = {
    "base rates": "shares of the training votes, without text",
    "item": "item alone",
    "features": "item, and features of the rater",
    "bias": "`bias`",
    "bias, features": "`bias`, features",
    "confusion": "`confusion`",
    "confusion, features": "`confusion`, features",
    **{name: f"{title}, tuned" for name, title in PEERS.items()},
    **{f"{name}, defaults": f"{title}, defaults" for name, title in PEERS.items() if name != "CoNAL"},
}
"""Names of the models on the page, in the order of the tables."""
OURS = ("item", "features", "bias", "bias, features", "confusion", "confusion, features")
METRICS = {
    "nll": ("NLL of a vote", 4),
    "rater_error": ("error", 3),
    "rater_distance": ("distance", 3),
    "kl": ("KL", 4),
    "manhattan": ("Manhattan", 3),
    "wasserstein": ("Wasserstein", 3),
    "accuracy": ("majority accuracy", 3),
}
"""Columns with their digits."""


def select(rows: Iterable[Result], **key: Any) -> list[Result]:
    """Return the rows with these entries."""
    return [row for row in rows if all(row.get(name) == value for name, value in key.items())]


def over_seeds(rows: Sequence[Result], name: str, model: str, metric: str) -> np.ndarray:
    """Return a metric of each fold as a mean over seeds, (folds,); empty if it was not measured."""
    lists = [row[metric] for row in select(rows, what="scores", set=name, model=model) if metric in row]
    return np.mean(lists, axis=0) if lists else np.empty(0)


def sets_of(rows: Sequence[Result]) -> list[str]:
    """Return the sets that were measured."""
    return list(dict.fromkeys(row["set"] for row in select(rows, what="scores")))


def in_interval(mean: float, low: float, high: float, digits: int = 4) -> str:
    """Return a difference with its interval as text."""
    return f"{mean:+.{digits}f} ({low:+.{digits}f} to {high:+.{digits}f})"


def difference(rows: Sequence[Result], name: str, model: str, against: str) -> tuple[str, str]:
    """Return the difference of the NLL of a vote from another model with its 95% interval, and p; empty if unknown.

    Over folds, it is the corrected resampled t-test. On a published split, it is over items, without p.
    """
    ours, other = (over_seeds(rows, name, each, "nll") for each in (model, against))
    if model == against or not len(ours) or len(ours) != len(other):
        return "", ""
    if len(ours) > 1:
        p = p_value(ours, other)
        return in_interval(float((ours - other).mean()), *difference_interval(ours, other)), f"{p:.3f}"
    for pair, sign in (((model, against), 1), ((against, model), -1)):
        if stored := select(rows, what="difference", set=name, model=pair[0], against=pair[1]):
            latest = max(stored, key=lambda row: int(row["seeds"]))
            low, high = sorted((sign * latest["low"], sign * latest["high"]))
            return in_interval(sign * latest["mean"], low, high), ""
    return f"{float((ours - other).mean()):+.4f}", ""


def scope(rows: Sequence[Result], models: Sequence[str]) -> str:
    """Return the folds and seeds behind a table, in sentences."""
    parts = []
    for name in sets_of(rows):
        scored = [row for row in select(rows, what="scores", set=name) if row["model"] in models]
        if scored:
            folds = len(scored[0]["nll"])
            seeds: dict[str, set[int]] = {}
            for row in scored:
                seeds.setdefault(row["model"], set()).add(row["seed"])
            counts = sorted({len(each) for each in seeds.values()})
            split = f"{folds} folds" if folds > 1 else "the published split"
            parts.append(f"{name}: {split}, {' to '.join(map(str, counts))} {'seed' if counts == [1] else 'seeds'}.")
    return " ".join(parts)


def table_of_models(rows: Sequence[Result]) -> str:
    """Return the metrics of the models of ldl."""
    models, lines = ("base rates", *OURS), []
    for name in sets_of(rows):
        for model in (model for model in models if len(over_seeds(rows, name, model, "nll"))):
            numbers = []
            for metric, (_, digits) in METRICS.items():
                values = over_seeds(rows, name, model, metric)
                numbers.append(f"{values.mean():.{digits}f}" if len(values) else "")
            gain = "" if model == "base rates" else difference(rows, name, model, "item")[0]
            lines.append([name, TITLES[model], numbers[0], gain, *numbers[1:]])
    titles = [title for title, _ in METRICS.values()]
    header = ["set", "model", titles[0], "difference from item alone (95%)", *titles[1:]]
    return f"{scope(rows, OURS)}\n\n{markdown(header, lines)}"


def table_of_peers(rows: Sequence[Result]) -> str:
    """Return the competing packages beside the models of ldl."""
    models, lines = ("bias", "confusion", *(name for name in TITLES if name.split(",")[0] in PEERS)), []
    for name in sets_of(rows):
        for model in (model for model in models if len(over_seeds(rows, name, model, "nll"))):
            columns = {metric: over_seeds(rows, name, model, metric).mean() for metric in ("nll", "kl", "accuracy")}
            gap, p = difference(rows, name, model, "bias")
            package = f"ldl {TITLES[model]}" if model in OURS else TITLES[model]
            numbers = [f"{columns['nll']:.4f}", gap, p, f"{columns['kl']:.4f}", f"{columns['accuracy']:.3f}"]
            lines.append([name, package, *numbers])
    header = ["set", "model", "NLL of a vote", "difference from ldl `bias` (95%)", "p", "KL", "majority accuracy"]
    return f"{scope(rows, models)}\n\n{markdown(header, lines)}"


def table_of_features(rows: Sequence[Result]) -> str:
    """Return what features of raters add."""
    pairs = {"item": "features", "bias": "bias, features", "confusion": "confusion, features"}
    lines = []
    for name in sets_of(rows):
        for model, described in pairs.items():
            if gap := difference(rows, name, described, model)[0]:
                lines.append([name, TITLES[model], gap])
    return markdown(["set", "model", "NLL of a vote with features, minus without (95%)"], lines)


def table_of_gains(rows: Sequence[Result]) -> str:
    """Return how much models of raters help, by the number of training votes of the rater."""
    lines = []
    for name in sets_of(rows):
        for row in (
            row for model in ("bias", "confusion") for row in select(rows, what="gains", set=name, model=model)
        ):
            least = sorted({each["least"] for each in row["bins"]})
            for number, start in enumerate(least):
                bins = select(row["bins"], least=start)
                votes = sum(each["votes"] for each in bins)
                gain = sum(each["votes"] * each["gain"] for each in bins) / votes
                end = f" to {least[number + 1] - 1}" if number + 1 < len(least) else " or more"
                lines.append(
                    [name, TITLES[row["model"]], f"{start}{end}" if start else "0", f"{votes:,}", f"{gain:+.4f}"]
                )
    header = [
        "set",
        "model",
        "training votes of the rater",
        "test votes",
        "NLL of the item alone, minus that of the model",
    ]
    return markdown(header, lines)


def table_of_raters(rows: Sequence[Result]) -> str:
    """Return what the tables of raters say, as means over folds."""
    lines = []
    for row in select(rows, what="raters"):
        means = {name: float(np.mean(row[name])) for name in ("raters", "std", "apart", "width", "held_out")}
        numbers = [f"{means['raters']:.0f}", f"{means['std']:.2f}", f"{means['apart']:.0%}", f"{means['width']:.2f}"]
        lines.append([row["set"], *numbers, f"{means['held_out']:.2f}"])
    header = ["set", "raters", "standard deviation of the bias", "intervals without 0", "median width of an interval"]
    return markdown([*header, "rank correlation with held-out votes"], lines)


def table_of_examples(rows: Sequence[Result]) -> str:
    """Return the raters with the least, the median and the largest bias in the first fold."""
    lines = []
    for row in select(rows, what="raters"):
        for title, example in zip(("lowest", "median", "highest"), row["examples"][0]):
            votes, bias, low, high, informative, least, most = example
            told = f"{informative:.3f} ({least:.3f} to {most:.3f})"
            lines.append([row["set"], title, str(votes), in_interval(bias, low, high, 2), told])
    header = ["set", "rater", "training votes", "bias (90%)", "informativeness in nats (90%)"]
    return markdown(header, lines)


def table_of_groups(rows: Sequence[Result]) -> str:
    """Return how well the population's predictions hold for groups of raters."""
    lines = []
    columns = {"nll": 3, "shift": 2, "calibration_error": 3, "known": 3}
    for row in sorted(select(rows, what="groups"), key=lambda row: len(row["rows"])):
        for group in row["rows"]:
            numbers = [
                f"{group[name]:.{digits}f} ± {group[f'{name}_se']:.{digits}f}"
                for name, digits in columns.items()
                if name in group
            ]
            lines.append(
                [row["set"], row["column"], group["group"], str(group["raters"]), f"{group['votes']:,}", *numbers]
            )
    header = ["set", "feature", "group", "raters", "votes", "NLL of a vote", "vote minus expectation"]
    return markdown([*header, "calibration error", "NLL with the rater known"], lines)


TABLES: dict[str, Callable[[Sequence[Result]], str]] = {
    "rater_models": table_of_models,
    "rater_peers": table_of_peers,
    "rater_vectors": table_of_raters,
    "rater_examples": table_of_examples,
    "rater_groups": table_of_groups,
    "rater_gains": table_of_gains,
    "rater_features": table_of_features,
}
"""Blocks of the page."""
