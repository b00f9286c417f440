"""What a model card says of data, protocol, figures and limits."""

from __future__ import annotations

import math
from typing import Any

from ldl.data.base import LDLDataModule
from ldl.data.sources import known_source
from ldl.metrics import measures
from ldl.reports.card.model import labels_in_words
from ldl.reports.files import markdown
from ldl.task import Task


def about_data(results: dict[str, Any], data: LDLDataModule) -> str:
    source, groups = known_source(data), getattr(data, "groups", None)
    known = "their groups (such as persons) are not known" if groups is None else f"in {len(set(groups)):,} groups"
    name = "" if data.title == results["data"] else f", {data.title}"
    lines = [f"`{results['data']}`{name}: {data.size:,} instances, {known}."]
    if source is not None:
        lines.append(f"{source.name}: {source.where}.")
    return " ".join(lines)


def about_protocol(results: dict[str, Any], data: LDLDataModule) -> str:
    folds = results["folds"]
    sizes = markdown(
        ("fold", "training", "validation", "test"),
        [[str(fold["fold"]), *(f"{fold[part]:,}" for part in ("n_train", "n_val", "n_test"))] for fold in folds[:20]],
    )
    more = f"\n\nand {len(folds) - 20} folds more, in `results.json`." if len(folds) > 20 else ""
    seed = "no seed" if results["seed"] is None else f"seed {results['seed']}"
    return f"`{results['protocol']}`, {seed}. {about_leaks(results)}\n\n{sizes}{more}"


def about_leaks(results: dict[str, Any]) -> str:
    leaks = [fold["leak"] for fold in results["folds"]]
    if None in leaks and results["leaky"] is False:
        return "Its parts have nothing in common, as published."
    if None in leaks:
        return (
            "**Nobody knows which instances belong together** (are of one person, say), so that leaks between training "
            "and test cannot be counted: the figures may be too good for people who are new."
        )
    share = f"{max(leaks):.1%} of the test instances share a group with training"
    if max(leaks) > 0:
        return f"**This protocol leaks: {share}. The figures are too good for groups that are new.**"
    return f"Audited: {share}."


def about_results(results: dict[str, Any], task: Task) -> str:
    known = {measure.name: measure for measure in measures(task.labels, task.gives_maps)}
    several = len(results["folds"]) > 1
    rows = []
    for name, mean in results["mean"].items():
        measure = known.get(name)
        if (measure is not None and measure.detail) or mean is None or not math.isfinite(mean):
            continue
        unit = f" ({task.labels.unit})" if measure is not None and measure.unit and task.labels.unit else ""
        arrow = {True: "higher", False: "lower", None: ""}[measure.higher_is_better if measure else None]
        figures = [f"{mean:.4g}", f"{results['std'][name]:.2g}"] if several else [f"{mean:.4g}"]
        rows.append([f"{name}{unit}", *figures, arrow])
    header = ("measure", "mean over folds", "deviation", "better") if several else ("measure", "test", "better")
    return f"Of {sum(fold['n_test'] for fold in results['folds']):,} test instances.\n\n{markdown(header, rows)}"


def about_limits(results: dict[str, Any], task: Task, data: LDLDataModule) -> str:
    lines = [
        "- Who and what is in the data beyond the figures above is not known: figures are of instances like these."
    ]
    leaks = [fold["leak"] for fold in results["folds"]]
    if results["leaky"] is not False and (None in leaks or max(leaks) > 0):
        lines.append("- **New groups, such as persons, will be predicted worse than the table says, or nobody knows.**")
    if len(results["folds"]) == 1:
        lines.append("- One fold was tested: what another would give is not known.")
    if min(fold["n_test"] for fold in results["folds"]) < 100:
        lines.append("- A fold has less than 100 test instances: chance is a large part of its figures.")
    if task.labels.kind == "ordinal":
        lines.append(f"- Nothing outside of the labels, {labels_in_words(task.labels)}, can be predicted.")
    lines.append("- Nobody examined it for decisions about people; examine it for yours before it makes any.")
    return "\n".join(lines)
