"""What a process does for a search: it tries one setting, or tests the best one of a fold."""

from __future__ import annotations

import copy
import json
import math
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytorch_lightning as pl

from ldl.comparison.choice import Choice, told
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.protocols import Fold
from ldl.running.candidates import NOTHING_LEFT
from ldl.running.cell_key import data_text
from ldl.running.crossval import fit_fold
from ldl.running.crossval_stage import FoldRuns, Parse
from ldl.running.folds import FoldOutcome, fold_folder, read_fold
from ldl.running.parser import LDLCLI
from ldl.running.quiet import quiet_trainers
from ldl.running.refusals import refusals
from ldl.running.run import seed_of
from ldl.running.training import seed_everything
from ldl.running.tune_file import TuneFile
from ldl.task import Task
from ldl.tuning.claims import Claim
from ldl.tuning.study import Setting, SharedStudy

ALL = "all"
"""In place of a fold's number: the study of all rows, of which comes the setting to train with."""

Part = int | str


@dataclass(frozen=True)
class Tuning:
    """A search, as its processes are told of it.

    Attributes:
        file: What the command line says.
        parse: Parses a command line.
        folder: The run directory.
        spec: Changes with anything that a trial depends on.
        maximize: Whether the highest value is the best.
    """

    file: TuneFile
    parse: Parse
    folder: Path
    spec: str
    maximize: bool

    def study(self, part: Part) -> SharedStudy:
        """The trials of a fold, or of all rows."""
        return SharedStudy(self.folder, part, self.spec, self.file.plan, self.file.space, self.maximize)

    def run(self, setting: Setting) -> LDLCLI:
        """The run that trains a setting."""
        return self.parse(self.file.command(setting))

    def best(self, part: Part) -> Setting:
        """The best setting so far. Raises LDLError where no trial was completed."""
        study = self.study(part)
        return study.setting(study.best)

    def runs(self, fold: int) -> FoldRuns:
        """What trains the best setting of a fold."""
        cli = self.run(self.best(fold))
        runs = FoldRuns(cli, _open(self, cli, fold), self.folder)
        runs.be_silent()
        return runs


class Pruned(Exception):
    """The trial is given up: others were better at this point."""


class Report(pl.Callback):
    """Reports the metric after every validation, of inner folds the mean so far.

    Args:
        claim: The trial.
        metric: As it is logged.
        before: What it came to in the inner folds before this one.
        is_last: Whether no inner fold follows.
    """

    def __init__(self, claim: Claim, metric: str, before: list[float], is_last: bool) -> None:
        self.claim, self.metric, self.before, self.is_last = claim, metric, before, is_last

    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking:
            return
        mean = float(np.mean([*self.before, logged(trainer, self.metric)]))
        epochs = _epochs(trainer)
        gives_up = self.claim.report(mean, len(self.before) * epochs + trainer.current_epoch)
        if gives_up and not (self.is_last and trainer.current_epoch + 1 >= epochs):
            raise Pruned


def _epochs(trainer: pl.Trainer) -> int:
    """How many epochs a fit has, by its epochs or its steps."""
    steps = math.ceil(trainer.num_training_batches / trainer.accumulate_grad_batches)
    limits = (trainer.max_epochs or 0, math.ceil(trainer.max_steps / steps))
    return min((limit for limit in limits if limit > 0), default=1)


@quiet_trainers()
def try_setting(tuning: Tuning, part: Part) -> bool:
    """Claim a trial and do it; False where there is none left to claim."""
    claim = tuning.study(part).claim()
    if claim is None:
        return False
    try:
        value = _measure(tuning, part, claim)
        if not math.isfinite(value):
            raise LDLError(f"val_{tuning.file.plan.metric} is {value}")
    except Pruned:
        claim.prune()
    except Exception as error:  # settings fail in ways of their own
        claim.fail(told(error))
    except BaseException:
        claim.give_back()
        raise
    else:
        claim.complete(value)
    return True


def _measure(tuning: Tuning, part: Part, claim: Claim) -> float:
    cli, metric = tuning.run(claim.setting), f"val_{tuning.file.plan.metric}"
    data = _open(tuning, cli, part)
    values: list[float] = []
    cuts = held_out(data, tuning.file.plan.inner_folds, part)
    for cut in cuts:
        inner = copy.copy(data)
        inner.split = cut
        inner.prepare_fold()
        task, trainer = _make(cli, inner, [Report(claim, metric, values, len(values) + 1 == len(cuts))])
        with warnings.catch_warnings():
            # Nobody looks at the intervals of a trial.
            warnings.filterwarnings("ignore", message="intervals and sets stay as predicted")
            trainer.fit(task, datamodule=inner)
        values.append(logged(trainer, metric))
    return float(np.mean(values))


def held_out(data: LDLDataModule, inner_folds: int, part: Part) -> list[Fold]:
    """What trials train on and, as validation part, are measured on; the test part of a fold is in neither.

    Groups that the fold keeps apart are kept apart here too. Raises LDLError where nothing can be held out.
    """
    split = data.split
    test = split.test[:0] if part == ALL else split.test
    if inner_folds == 1 and part != ALL:
        cuts = [split]
    else:
        rows = np.setdiff1d(np.concatenate([split.train, split.val, split.test]), test)
        choice = Choice(inner_folds=inner_folds, val_fraction=data.val_fraction)
        cuts = [Fold(cut.train, cut.test, test) for cut in choice.cuts(data, rows)]
    if not all(len(cut.val) for cut in cuts):
        raise LDLError(
            "tune.inner_folds 1 measures trials on the validation part, and there is none; set data.val_fraction "
            "above 0, or tune.inner_folds above 1"
        )
    return cuts


def logged(trainer: pl.Trainer, metric: str) -> float:
    """What the last validation measured. Raises LDLError where it did not."""
    if metric not in trainer.callback_metrics:
        raise LDLError(f"training has not measured {metric}; let it validate (trainer.limit_val_batches and such)")
    return float(trainer.callback_metrics[metric])


@quiet_trainers()
def fit_best(tuning: Tuning, fold: int) -> FoldOutcome:
    """Train the best setting of a fold on its training part and test it, as a run; what is there is read."""
    key = {"search": tuning.spec, "setting": json.dumps(tuning.best(fold))}
    own = fold_folder(tuning.folder, fold)
    with suppress(LDLError):  # another setting was the best there, of fewer trials
        if (done := read_fold(own, key)) is not None:
            return done
    runs = tuning.runs(fold)
    with refusals():
        made = fit_fold(fold, runs.make_task, runs.data, runs.seed, runs.make_trainer, own, "last", 1, key)
    return made[1]


def _make(cli: LDLCLI, data: LDLDataModule, callbacks: list[pl.Callback]) -> tuple[Task, pl.Trainer]:
    seed_everything(seed_of(cli.config))
    task = cli.make_task(cli.config)
    task.build(data.labels, data.input_shape)
    return task, cli.make_trainer(cli.config, callbacks, **NOTHING_LEFT)


_opened: dict[tuple[str, str], LDLDataModule] = {}
"""The last data of this process, by the search and their options: most settings share them."""


def _open(tuning: Tuning, cli: LDLCLI, part: Part) -> LDLDataModule:
    key = tuning.spec, data_text(cli.dump(cli.config))
    if key not in _opened:
        _opened.clear()
        data = cli.make_data(cli.config)
        data.setup()
        _opened[key] = data
    data = _opened[key]
    fold = 0 if part == ALL and data.num_folds else part
    if isinstance(fold, int) and data.fold != fold:
        data.select_fold(fold)
    return data
