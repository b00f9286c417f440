"""Candidates of a comparison as runs: what ``train.py`` would do with a configuration, without leaving anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np
import torch
from jsonargparse import Namespace

from ldl.comparison.choice import Candidate, Choice, Setting
from ldl.data.base import LDLDataModule
from ldl.data.column import pieces
from ldl.errors import LDLError
from ldl.protocols import leak, split_ratio
from ldl.running.cell_key import check_one_process, content_digest, cut, data_text, depends_on
from ldl.running.comparison_file import ComparisonFile, Entry
from ldl.running.parser import LDLCLI
from ldl.running.training import fit_and_test, seed_everything
from ldl.task import Task

Parse = Callable[[list[str]], LDLCLI]

NOTHING_LEFT: dict[str, Any] = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
}


class RunCandidate(Candidate):
    """A run configuration in each of its settings; data that several of them share are read once.

    Args:
        name: In tables.
        file: The comparison.
        entry: The candidate in it.
        parse: Parses a command line.
        tables: The data that are open already, by their configuration.

    Raises:
        LDLError: a setting cannot be parsed, its data cannot be read, or it asks for what a comparison does not do.
    """

    def __init__(
        self, name: str, file: ComparisonFile, entry: Entry, parse: Parse, tables: dict[str, LDLDataModule]
    ) -> None:
        self.name = name
        self.settings = entry.settings(file.given)
        self._tables = tables
        try:
            self._runs = [Run(parse(file.command(entry, setting))) for setting in self.settings]
            self._quick = self._runs
            if entry.tuning and len(self.settings) > 1:
                self._quick = [
                    Run(parse(file.command(entry, {**setting, **entry.tuning}))) for setting in self.settings
                ]
            for run, quick, setting in zip(self._runs, self._quick, self.settings):
                data = self.open(setting, 0)
                _check_rows(data)
                for trial in {id(run): run, id(quick): quick}.values():
                    trial.cli.make_task(trial.config).build(data.labels, data.input_shape)
        except LDLError as error:
            raise LDLError(f"candidate {name}: {error}") from error

    @property
    def head(self) -> str:
        """Class of the head in the first setting."""
        return str(self._runs[0].config.model.head.class_path.rpartition(".")[2])

    def spec(self, choice: Choice, digests: dict[str, str]) -> str:
        """Changes with anything that a cell of this candidate depends on.

        ``digests`` are those of data that were read before, by their configuration; what is missing is added.
        """
        known = [run.depends_on for run in [*self._runs, *self._quick]]
        for run, setting in zip(self._runs, self.settings):
            if run.data not in digests:
                digests[run.data] = content_digest(self.open(setting, 0))
        contents = [digests[run.data] for run in self._runs]
        text = json.dumps([self.settings, known, str(choice), contents, version("ldl")], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def text(self, setting: Setting) -> str:
        """The complete configuration of a setting, as YAML."""
        return self._run(setting).text

    def open(self, setting: Setting, fold: int) -> LDLDataModule:
        """The data of a setting, which other candidates share: they are copied before they are fitted."""
        run = self._run(setting)
        if run.data not in self._tables:
            self._tables[run.data] = run.cli.make_data(run.config)
            self._tables[run.data].setup()
        data = self._tables[run.data]
        if data.fold != fold:
            data.select_fold(fold)
        return data

    def score(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> dict[str, float]:
        """All metrics of the test part, as ``results.json`` of the run has them."""
        return self.fit(setting, data, choosing)[1]

    def fit(self, setting: Setting, data: LDLDataModule, choosing: bool = False) -> tuple[Task, dict[str, float]]:
        """The trained task, besides what :meth:`score` measures."""
        run = self._run(setting, choosing)
        seed_everything(run.seed)
        task = run.cli.make_task(run.config)
        task.build(data.labels, data.input_shape)
        trainer = run.cli.make_trainer(run.config, [], **NOTHING_LEFT)
        if trainer.world_size > 1:
            raise LDLError(f"a comparison works in one process, and the trainer has {trainer.world_size}")
        return task, fit_and_test(trainer, task, data)[0]["metrics"]

    def _run(self, setting: Setting, choosing: bool = False) -> Run:
        return (self._quick if choosing else self._runs)[self.settings.index(setting)]


class Run:
    """One parsed command line.

    Attributes:
        cli: It.
        config: Its configuration.
        text: The complete configuration as YAML.
        data: What data it opens, as text.
        depends_on: What its measures depend on, but for the content of its data.
        seed: That of the run.
    """

    def __init__(self, cli: LDLCLI) -> None:
        self.cli, self.config = cli, cli.config
        _refuse(self.config)
        self.text = cli.dump(self.config)
        self.data = data_text(self.text)
        self.depends_on = depends_on(self.text)
        self.seed = None if self.config.seed_everything is False else int(self.config.seed_everything)


def _check_rows(data: LDLDataModule) -> None:
    if not data.num_folds:
        raise LDLError(f"{type(data).__name__} has a published split and no folds to compare on; take data with folds")
    if len(data.input_shape) != 1:
        raise LDLError(
            f"{type(data).__name__} gives inputs of shape {data.input_shape}; --stage compare takes rows of "
            "features, such as TabularLDL or TabularValues"
        )


def _refuse(config: Namespace) -> None:
    if config.ckpt_path is not None:
        raise LDLError("--stage compare trains every fold anew; leave --ckpt_path out")
    if config.select == "best":
        raise LDLError("--stage compare keeps no checkpoints, so there are no best weights; leave --select best out")
    check_one_process(config, "--stage compare works")


def make_candidates(file: ComparisonFile, parse: Parse) -> list[RunCandidate]:
    """All of a file, the mean predictor first, which is added where it is missing. Raises LDLError."""
    tables: dict[str, LDLDataModule] = {}
    made = [RunCandidate(name, file, entry, parse, tables) for name, entry in file.candidates.items()]
    mean = [candidate for candidate in made if candidate.head == "MeanPredictor"]
    if not mean:
        first = next(iter(file.candidates.values()))
        entry = Entry(first.run, {"model.head": "MeanPredictor", "trainer.max_epochs": 1})
        mean = [RunCandidate("MeanPredictor", file, entry, parse, tables)]
    made = [*mean, *(candidate for candidate in made if candidate not in mean)]
    _check_same_rows(made)
    return made


def specs_of(candidates: list[RunCandidate], choice: Choice) -> dict[str, str]:
    """The :meth:`RunCandidate.spec` of each candidate, by its name."""
    digests: dict[str, str] = {}
    return {candidate.name: candidate.spec(choice, digests) for candidate in candidates}


def _check_same_rows(candidates: list[RunCandidate]) -> None:
    """Raise LDLError where candidates are not tested on the same rows: their means would not compare."""
    first = candidates[0].open(candidates[0].settings[0], 0)
    tests = [cut(first, fold).test for fold in range(first.num_folds)]
    for candidate in candidates:
        for setting in candidate.settings:
            data = candidate.open(setting, 0)
            same = data.num_folds == first.num_folds and _same(data, first)
            if not same or any(not np.array_equal(cut(data, fold).test, rows) for fold, rows in enumerate(tests)):
                raise LDLError(
                    f"candidate {candidate.name} {setting or ''} has other targets or folds than {candidates[0].name}; "
                    "give options of data that decide rows and folds for all candidates"
                )


def _same(data: LDLDataModule, other: LDLDataModule) -> bool:
    """Whether all targets are."""
    pairs = zip_longest(*(pieces(part.columns["target"]) for part in (data, other)))
    return all(one is not None and two is not None and torch.equal(one, two) for one, two in pairs)


def worst_leak(data: LDLDataModule) -> float | None:
    """The leak audit of the fold that leaks most; None where nobody knows."""
    if data.leaky is None or data.groups is None:
        return None
    return max(leak(cut(data, fold), data.groups) for fold in range(data.num_folds))


def mean_split_ratio(data: LDLDataModule) -> float:
    """Tested rows for each row of the training part, of all folds."""
    return split_ratio(cut(data, fold) for fold in range(data.num_folds))
