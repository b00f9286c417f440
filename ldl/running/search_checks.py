"""What is wrong with a search, found before its first trial."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jsonargparse import Namespace

from ldl.data.base import LDLDataModule
from ldl.errors import LDLError, did_you_mean
from ldl.metrics import measures
from ldl.options import check_options
from ldl.running.cell_key import check_one_process
from ldl.running.crossval_stage import Parse
from ldl.running.parser import LDLCLI
from ldl.running.run import make_task
from ldl.running.trial import ALL, Part, held_out
from ldl.running.tune_file import TuneFile
from ldl.task import Task
from ldl.tuning.plan import Plan
from ldl.tuning.space import Dimension
from ldl.tuning.study import grid

VALIDATED = ("distribution", "class", "value", "line")
"""Kinds of measures that validation has: intervals and sets are calibrated after it."""


def check_run(cli: LDLCLI, plan: Plan) -> tuple[LDLDataModule, Task]:
    """The data, set up, and the task, built, of the run that is searched. Raises LDLError for what a search cannot."""
    config = cli.config
    if config.ckpt_path is not None:
        raise LDLError("--stage tune trains every trial anew; leave --ckpt_path out")
    if config.select == "best":
        raise LDLError("--stage tune measures the last weights, as trials keep none; leave --select best out")
    check_one_process(config, "--stage tune trains each trial")
    data = cli.make_data(config)
    data.setup()
    if plan.nested and not data.num_folds:
        raise LDLError(f"{type(data).__name__} has a published split and no folds; give tune.nested false")
    return data, make_task(cli, config, data, {})


def direction(task: Task, data: LDLDataModule, metric: str) -> bool:
    """Whether the highest value of a metric is the best. Raises LDLError for one that validation does not have."""
    known = {
        measure.name: measure
        for measure in measures(data.labels, task.gives_maps)
        if measure.of in VALIDATED and not measure.detail and measure.higher_is_better is not None
    }
    if metric not in known:
        raise LDLError(f"tune.metric {metric!r} is not one of {', '.join(known)}{did_you_mean(metric, known)}")
    return bool(known[metric].higher_is_better)


def check_parts(data: LDLDataModule, inner_folds: int, parts: list[Part]) -> None:
    """Raise LDLError where rows of a part of the data cannot be held out; the data stay at the last fold."""
    for part in parts:
        if isinstance(part, int) and data.num_folds:
            data.select_fold(part)
        try:
            held_out(data, inner_folds, part)
        except LDLError as error:
            where = "all rows" if part == ALL else f"fold {part}"
            raise LDLError(f"tune: {error}, in {where}") from error


def check_space(file: TuneFile, parse: Parse, data: LDLDataModule) -> TuneFile:
    """The file with whole ranges of options that take any number as such.

    Raises:
        LDLError: an option does not exist or does not take an end of its range, or the space is no grid.
    """
    space = [_checked(dimension, file, parse, data) for dimension in file.space]
    if file.plan.sampler == "grid":
        grid(space)
    return replace(file, space=space)


def _checked(dimension: Dimension, file: TuneFile, parse: Parse, data: LDLDataModule) -> Dimension:
    for value in dimension.ends:
        try:
            cli = parse(file.command({dimension.name: value}))
            check_options(cli.make_data(cli.config))
            make_task(cli, cli.config, data, {})
        except LDLError as error:
            raise LDLError(f"tune.space.{dimension.name}: {error}") from error
    # What the parser has made of a whole number tells what the option takes.
    takes_any = isinstance(_get(cli.config, dimension.name), float)
    return dimension.in_floats() if takes_any and dimension.is_whole else dimension


def _get(config: Namespace, name: str) -> Any:
    """The value of an option, with or without ``init_args`` in its name."""
    value: Any = config
    for part in name.split("."):
        if isinstance(value, Namespace) and part not in value and "init_args" in value:
            value = value.init_args
        value = value.get(part) if isinstance(value, Namespace) else None
    return value
