"""The candidates of a comparison, which are trained as runs that leave no files."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from ldl.callbacks import BestEpoch
from ldl.command.command_line import parse_anew
from ldl.command.config import Config
from ldl.data.base import LDLDataModule
from ldl.data.storage import pieces
from ldl.errors import LDLError, naming
from ldl.jobs.folds import all_folds
from ldl.jobs.identity import content_digest, data_text, deciding_options, split_of
from ldl.jobs.store import digest
from ldl.jobs.workers import check_one_process
from ldl.run.parts import build_trainer
from ldl.run.run_options import trainer_names
from ldl.run.training import fit_and_test, seed_everything
from ldl.search.comparison import ComparisonFile, Entry
from ldl.search.selection import Candidate, Selection, Setting
from ldl.task import Task

NO_FILES: dict[str, Any] = {"devices": 1, **dict.fromkeys(trainer_names("display"), False)}
"""Options of a trainer that works in this process, leaves no files and prints nothing."""


class RunCandidate(Candidate):
    """A run configuration in each of its settings. Data that several settings share are read once.

    Args:
        name: Name in tables.
        file: The comparison.
        entry: The candidate in it.
        opened: Data modules that are open, by their configuration.

    Raises:
        LDLError: A setting cannot be parsed, its data cannot be read, or a comparison does not support it.
    """

    def __init__(self, name: str, file: ComparisonFile, entry: Entry, opened: dict[str, LDLDataModule]) -> None:
        self.name = name
        self.settings = entry.settings(file.fixed)
        self._opened = opened
        cheaper = entry.tuning if len(self.settings) > 1 else {}
        with naming(f"candidate {name}"):
            self._runs = [_CandidateRun(parse_anew(file.command(entry, setting))) for setting in self.settings]
            self._cheap_runs = [
                _CandidateRun(parse_anew(file.command(entry, {**setting, **cheaper}))) if cheaper else run
                for run, setting in zip(self._runs, self.settings)
            ]
            for setting in self.settings:
                data = self.open(setting, 0)
                _check_rows(data)
                for choosing in (False, True):
                    run = self._run(setting, choosing)
                    run.config.instantiate("model").build(data.labels, data.input_shape, raters=data)

    @property
    def head(self) -> str:
        """Class of the head in the first setting."""
        return self._runs[0].config.head

    def identity(self, selection: Selection, digests: dict[str, str]) -> str:
        """Return a digest of everything that decides the results of this candidate.

        ``digests`` are those of data modules by their configuration; missing ones are added.
        """
        for run, setting in zip(self._runs, self.settings):
            if run.data not in digests:
                digests[run.data] = content_digest(self.open(setting, 0))
        options = [run.options for run in [*self._runs, *self._cheap_runs]]
        contents = [digests[run.data] for run in self._runs]
        return digest([self.settings, options, str(selection), contents, version("ldl")])

    def text(self, setting: Setting) -> str:
        """Return the complete configuration of a setting as YAML."""
        run = self._run(setting)
        return run.config.text(self.open(setting, 0).chosen)

    def value(self, setting: Setting, name: str) -> Any:
        """Return the value of an option in a setting."""
        return self._run(setting).config.values.get(name)

    def open(self, setting: Setting, fold: int) -> LDLDataModule:
        """Return the data module of a setting, which other candidates share: copy it before training."""
        run = self._run(setting)
        if run.data not in self._opened:
            self._opened[run.data] = open_data(run.config)
        data = self._opened[run.data]
        if data.fold != fold:
            data.select_fold(fold)
        return data

    def score(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> dict[str, float]:
        """Return all metrics of the test set, as in ``results.json`` of the run."""
        return self.fit(setting, data, choosing)[1]

    def fit(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> tuple[Task, dict[str, float]]:
        """Return the trained task with its :meth:`score`."""
        run = self._run(setting, choosing)
        seed_everything(run.config.seed)
        task: Task = run.config.instantiate("model")
        task.build(data.labels, data.input_shape, raters=data)
        return task, fit_and_test(build_trainer(run.config, [], **NO_FILES), task, data)[0]["metrics"]

    def _run(self, setting: Setting, choosing: bool = False) -> _CandidateRun:
        return (self._cheap_runs if choosing else self._runs)[self.settings.index(setting)]


class _CandidateRun:
    """A parsed command line of a comparison, its data as text, and the options that decide its results."""

    def __init__(self, config: Config) -> None:
        self.config = config
        check_from_scratch(config.values, "compare")
        text = config.text()
        self.data, self.options = data_text(text), deciding_options(text)


def open_data(config: Config) -> LDLDataModule:
    """Return the data module of a run after ``setup``.

    Without a given share, rows are held out only for a run that chooses its epoch on them, and not to calibrate.
    """
    data: LDLDataModule = config.instantiate("data")
    if data.val_fraction is None and not _keeps_best(config):
        data.val_fraction = 0.0
    data.setup()
    return data


def _keeps_best(config: Config) -> bool:
    callbacks = config.values.trainer.callbacks or []
    entries = callbacks if isinstance(callbacks, list) else [callbacks]
    return any(entry.class_path.rpartition(".")[2] == BestEpoch.__name__ for entry in entries)


def check_from_scratch(config: Any, stage: str) -> None:
    """Raise LDLError for options that a comparison or a search cannot follow."""
    if config.ckpt_path is not None:
        raise LDLError(f"--stage {stage} trains every model from scratch; leave --ckpt_path out")
    if config.select == "best":
        raise LDLError(f"--stage {stage} keeps no checkpoints to select the best from; leave --select best out")
    check_one_process(config, f"--stage {stage} trains each model")


def _check_rows(data: LDLDataModule) -> None:
    all_folds(data, "take data with folds")
    if len(data.input_shape) != 1:
        raise LDLError(
            f"{type(data).__name__} gives inputs of shape {data.input_shape}; --stage compare takes rows of "
            "features, such as TabularLDL or TabularValues"
        )


def make_candidates(file: ComparisonFile) -> list[RunCandidate]:
    """Return the candidates of a file, the mean predictor first, which is added if it is missing.

    Raises:
        LDLError: A candidate cannot be made, or they have different test rows.
    """
    opened: dict[str, LDLDataModule] = {}
    made = [RunCandidate(name, file, entry, opened) for name, entry in file.entries.items()]
    if not any(candidate.head == "MeanPredictor" for candidate in made):
        mean = {"model.head": "MeanPredictor", "model.backbone": "Identity", "trainer.max_epochs": 1}
        entry = Entry(next(iter(file.entries.values())).run, mean)
        made.append(RunCandidate("MeanPredictor", file, entry, opened))
    made.sort(key=lambda candidate: candidate.head != "MeanPredictor")
    reference = made[0].open(made[0].settings[0], 0)
    for candidate in made:
        for setting in candidate.settings:
            if not _have_same_rows(candidate.open(setting, 0), reference):
                raise LDLError(
                    f"candidate {candidate.name} {setting or ''} has other targets or folds than {made[0].name}; "
                    "give all candidates the same options of rows and folds"
                )
            for name in sorted(f"trainer.{limit}" for limit in trainer_names("limit")):
                if candidate.value(setting, name) != made[0].value(made[0].settings[0], name):
                    raise LDLError(
                        f"candidate {candidate.name}: {name} leaves instances out; give it on the command line"
                    )
    return made


def identities(candidates: list[RunCandidate], selection: Selection) -> dict[str, str]:
    """Return the :meth:`RunCandidate.identity` of each candidate by name."""
    digests: dict[str, str] = {}
    return {candidate.name: candidate.identity(selection, digests) for candidate in candidates}


def _have_same_rows(data: LDLDataModule, other: LDLDataModule) -> bool:
    """Return whether the labels, the targets and the test rows of all folds are equal."""
    if data is other:
        return True
    if not have_same_tests(data, other):
        return False
    targets = zip(*(pieces(each.observed_target) for each in (data, other)))
    return all(torch.equal(ours, others) for ours, others in targets)


def have_same_tests(data: LDLDataModule, other: LDLDataModule) -> bool:
    """Return whether two data modules have the same labels, test rows in all folds, and tests of the current fold."""
    if (data.labels, data.num_folds, data.size) != (other.labels, other.num_folds, other.size):
        return False
    folds = range(data.num_folds) or [data.fold]
    if not all(np.array_equal(split_of(data, fold).test, split_of(other, fold).test) for fold in folds):
        return False
    rows = torch.from_numpy(np.sort(data.split.test))
    names = {name for each in (data, other) for name in ("target", "value", "votes") if name in each.columns}
    if not all(name in each.columns for each in (data, other) for name in names):
        return False
    return all(_equal(data.columns[name][rows], other.columns[name][rows]) for name in names)


def _equal(ours: torch.Tensor, others: torch.Tensor) -> bool:
    return ours.shape == others.shape and torch.allclose(ours, others, rtol=0, atol=0, equal_nan=True)
