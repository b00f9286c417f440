"""``--stage tune``: a hyperparameter search by Optuna, whose trials many processes share, and the test of the best.

Trials lie in Optuna's journal storage below the run directory. A search that was stopped or killed continues with the
trials that are missing.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytorch_lightning as pl
from filelock import FileLock
from typing_extensions import override

from ldl.charts.drawing import captioned, warn_on_error
from ldl.checkpoint import replacing
from ldl.command.arguments import plain
from ldl.command.command_line import Command, parse_anew
from ldl.command.config import Config
from ldl.command.messages import program, user_errors
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError, check_one_of, naming
from ldl.jobs.crossval import configured_folds
from ldl.jobs.folds import FoldResult, Folds, all_folds
from ldl.jobs.identity import content_digest, data_text, deciding_options, file_digests, source_digests
from ldl.jobs.store import digest
from ldl.jobs.workers import PerProcess, Workers
from ldl.metrics import higher_is_better, metrics_for
from ldl.options import check_options, role_of
from ldl.reports.files import write_json
from ldl.run import signals
from ldl.run.console import bars
from ldl.run.output import quiet_trainers
from ldl.run.parts import Parts, build_trainer
from ldl.run.results import print_table
from ldl.run.run_dir import SEARCHES, check_no_run, check_writable, choose_folder
from ldl.run.run_options import RUN_OPTIONS, trainer_names
from ldl.run.training import seed_everything
from ldl.search.candidates import NO_FILES, check_from_scratch, have_same_tests, open_data
from ldl.search.compare import setting_text
from ldl.search.selection import ALL, FoldNumber, Setting, on_split, validation_splits
from ldl.search.space import Dimension, TuneFile, grid_size, read_tuning
from ldl.search.study import Studies, Study, draw_search, load_optuna, write_trials
from ldl.task import Task
from ldl.validation.option import ROLES
from ldl.validation.yaml_text import load_values

if TYPE_CHECKING:
    import optuna

VALIDATED_METRICS = ("distribution", "class", "value", "line")
"""Kinds of metrics that validation has: intervals and sets are calibrated after it."""
DECIDING_ROLES = ("path", "fold", "group", "validation", "label")
"""Roles of options that decide what the settings of a search are measured on."""
SAME_INSTANCES = "settings are compared on the same instances and labels, so give it once, on the command line"


@dataclass(frozen=True)
class HyperparameterSearch:
    """A search as its processes receive it.

    Attributes:
        file: The search file with the command line.
        folder: The run directory.
        identity: Digest of whatever decides a trial.
        maximize: Whether higher values are better.
    """

    file: TuneFile
    folder: Path
    identity: str
    maximize: bool

    @property
    def metric(self) -> str:
        """The metric as it is logged."""
        return f"val_{self.file.plan.metric}"

    def study(self, fold: FoldNumber) -> Study:
        """Return the trials of a fold, or of all rows."""
        return Study(self.folder, fold, self.identity, self.file.plan, self.file.space, self.maximize)

    def run(self, setting: Setting) -> Config:
        """Return the parsed run that trains a setting."""
        return parse_anew(self.file.command(setting))

    def best_folds(self, fold: int) -> Folds:
        """Return the ``Folds`` that train the best setting of a fold."""
        setting = self.study(fold).best_setting
        config = self.run(setting)
        key = {"search": self.identity, "setting": json.dumps(setting)}
        return replace(configured_folds(config, _open(self, config, fold), self.folder, key, quiet=True), draws=True)


def tune(command: Command) -> None:
    """Search until all trials are finished, train and test the best setting, and write ``best.yaml``.

    The same command with the same run directory continues after a stop. If it runs at the same time on several machines
    that share the directory, all of them work on the same trials.

    Raises:
        LDLError: the run, the space or the metric is wrong, the directory has a run, or no trial was completed.
    """
    file = read_tuning(command)
    with quiet_trainers(), user_errors():
        load_optuna()
        config, plan = parse_anew(file.command({})), file.plan
        check_from_scratch(config.values, "tune")
        data = open_data(config)
        folds: list[FoldNumber] = [data.fold]
        if plan.nested:
            folds = [*all_folds(data, "give tune.nested false"), ALL]
        validation_splits(data, plan.inner_folds, data.fold)  # raises an error now and not in every trial
        maximize = _is_maximized(Parts(config, data).task, data, plan.metric)
        file = replace(file, space=[_checked(dimension, file, data) for dimension in file.space])
        if plan.sampler == "grid":
            grid_size(file.space)
        folder = choose_folder(config.values, data, "tune")
        if not (folder / SEARCHES).exists():
            check_no_run(folder, "a search")
        check_writable(folder)
        search = HyperparameterSearch(file, folder.absolute(), _identity(config, file, data), maximize)
        signals.shutdown.again = f"the same command with --run_dir {folder} resumes it"
        studies = {fold: search.study(fold) for fold in folds}
        workers = Workers(config.values.jobs, config.values.scheduler)
        _run_trials(search, studies, workers, config.values.trainer.enable_progress_bar is not False)
        # Of several machines one trains the best settings, and the others read its results.
        with FileLock(folder / SEARCHES / "final.lock"):
            _finish(search, studies, workers, data)


def _is_maximized(task: Task, data: LDLDataModule, metric: str) -> bool:
    """Return whether the highest value of a metric is the best. Raises LDLError if validation does not have it."""
    kinds = {*VALIDATED_METRICS, *(["votes"] if "votes" in data.columns else [])}
    kinds |= {"rater"} if data.single_votes is not None else set()
    metrics = [
        each.name
        for each in metrics_for(data.labels, task.gives_maps)
        if each.of in kinds and not each.detail and each.higher_is_better is not None
    ]
    check_one_of("tune.metric", metric, metrics)
    return bool(higher_is_better(metric))


def _checked(dimension: Dimension, file: TuneFile, data: LDLDataModule) -> Dimension:
    """Check that an option takes its values, and that they are tested on the same rows with the same labels.

    Returns a range of floats if the option takes any number.
    """
    with naming(f"tune.space.{dimension.name}"):
        _check_role(plain(dimension.name), data)
        for value in dimension.ends:
            config = parse_anew(file.command({dimension.name: value}))
            other = config.instantiate("data")
            check_options(other)
            if plain(dimension.name).partition(".")[0] == "data":
                other.setup()
                if not have_same_tests(other, data):
                    raise LDLError(f"{value} tests other rows, or has other labels, than the run; {SAME_INSTANCES}")
            _ = Parts(config, data).task
    # The parser converts a whole number to a float if the option is a float.
    parsed = {plain(name): value for name, value in config.values.items()}
    takes_floats = isinstance(parsed.get(plain(dimension.name)), float)
    return dimension.as_floats() if takes_floats and dimension.is_whole else dimension


def _check_role(name: str, data: LDLDataModule) -> None:
    """Raise LDLError for an option that decides which instances or labels a setting is measured on."""
    group, _, rest = name.partition(".")
    if group == "data" and (role := role_of(data, rest.partition(".")[0])) in DECIDING_ROLES:
        raise LDLError(f"it decides {ROLES[role]}; {SAME_INSTANCES}")
    if group == "trainer" and rest in trainer_names("limit"):
        raise LDLError(f"it decides {ROLES['limit']}; {SAME_INSTANCES}")
    if group in RUN_OPTIONS and group != "matmul_precision":
        raise LDLError("it is no option of a model, its training or its inputs; leave it out of the space")


def _identity(config: Config, file: TuneFile, data: LDLDataModule) -> str:
    tried = [parse_anew(file.command({each.name: value})) for each in file.space for value in each.values]
    models = [load_values(run.text())["model"] for run in tried]
    files = file_digests([models, [each.values for each in file.space]]) | source_digests(models)
    options = deciding_options(config.text()), file.plan.deciding_options()
    space = list(map(str, file.space))
    return digest(["search 2", options, space, files, content_digest(data), version("ldl")])


def _run_trials(search: HyperparameterSearch, studies: Studies, workers: Workers, shows: bool) -> None:
    with bars(shows) as progress:
        bar = progress.add_task("trials", total=sum(study.wanted for study in studies.values()))

        def update(*_: Any) -> None:
            progress.update(bar, completed=sum(study.wanted - study.missing for study in studies.values()))

        while any(study.missing for study in studies.values()):
            update()
            trials: dict[str, Callable[[], Any]] = {}
            for fold, study in studies.items():
                for number in range(study.missing):
                    trials[f"trial {number} of fold {fold}"] = partial(run_trial, search, fold)
            _run(workers, trials, update)
        update()


def _run(workers: Workers, jobs: dict[str, Callable[[], Any]], on_result: Callable[[str, Any], None]) -> None:
    for name, reason in workers.run(jobs, on_result).items():
        raise LDLError(f"{name}: {reason}")


def _finish(search: HyperparameterSearch, studies: Studies, workers: Workers, data: LDLDataModule) -> None:
    """Train and test the best setting of every fold, and write all files."""
    folder, plan = search.folder, search.file.plan
    write_trials(folder / "trials.csv", studies, search.metric)
    last = list(studies)[-1]
    setting = studies[last].best_setting
    with replacing(folder / "best.yaml") as stream:
        stream.write(search.run(setting).text(data.chosen).encode())
    tested = [fold for fold in studies if isinstance(fold, int)]
    results: dict[str, FoldResult] = {}
    _run(workers, {str(fold): partial(fit_best, search, fold) for fold in tested}, results.__setitem__)
    ordered = [results[str(fold)] for fold in tested]
    for fold, result in zip(tested, ordered):
        best = {"setting": studies[fold].best_setting, search.metric: studies[fold].best.value}
        result.content["folds"][0] |= best
    folds = search.best_folds(tested[-1])
    content = folds.combine(ordered, folds.restore(tested[-1]))
    content["tuning"] = {
        "setting": setting,
        **plan.deciding_options(),
        "metric": search.metric,
        "nested": plan.nested,
        "trials": {str(fold): study.counts for fold, study in studies.items()},
    }
    write_json(folder / "results.json", content)
    with captioned(f"search on {data.title}, {data.protocol}  ·  {folder.name}"), warn_on_error("history.png"):
        draw_search(folder / "history.png", studies, search.metric)
    print_table(content, data.labels)
    print(f"best: {setting_text(setting)}, {search.metric} {studies[last].best.value:.4f}")
    print(f"train it: {program()} -c {folder / 'best.yaml'}")
    print(f"more: {', '.join(str(folder / name) for name in ('results.json', 'trials.csv', 'history.png'))}")


# Jobs of any process.


@quiet_trainers()
def run_trial(search: HyperparameterSearch, fold: FoldNumber) -> None:
    """Run one trial of a fold, if any is missing."""
    search.study(fold).run_trial(partial(evaluate, search, fold))


def evaluate(search: HyperparameterSearch, fold: FoldNumber, trial: optuna.Trial, setting: Setting) -> float:
    """Return the mean metric of a setting over the validation splits. Raises TrialPruned if the pruner ends it."""
    config = search.run(setting)
    data = _open(search, config, fold)
    values: list[float] = []
    splits = validation_splits(data, search.file.plan.inner_folds, fold)
    for split in splits:
        inner = on_split(data, split)
        seed_everything(config.seed)
        task = config.instantiate("model")
        task.build(inner.labels, inner.input_shape, raters=inner)
        report = ReportTrial(trial, search.metric, values, len(values) + 1 == len(splits))
        trainer = build_trainer(config, [report], **NO_FILES)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="intervals and sets stay as predicted")  # no trial uses them
            trainer.fit(task, datamodule=inner)
        values.append(_logged(trainer, search.metric))
    value = float(np.mean(values))
    if not math.isfinite(value):
        raise LDLError(f"{search.metric} is {value}")
    return value


class ReportTrial(pl.Callback):
    """Report the metric to Optuna after every validation, and end a trial that the pruner gives up.

    Args:
        trial: The trial.
        metric: The metric as it is logged.
        before: Its values in earlier inner folds, of which the mean is reported.
        is_last: Whether this is the last inner fold.
    """

    def __init__(self, trial: optuna.Trial, metric: str, before: list[float], is_last: bool) -> None:
        self.trial, self.metric, self.before, self.is_last = trial, metric, before, is_last

    @override
    def on_validation_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.sanity_checking:
            return
        steps = math.ceil(trainer.num_training_batches / trainer.accumulate_grad_batches)
        limits = (trainer.max_epochs or 0, math.ceil(trainer.max_steps / steps))
        epochs = min((limit for limit in limits if limit > 0), default=1)
        mean = float(np.mean([*self.before, _logged(trainer, self.metric)]))
        self.trial.report(mean, len(self.before) * epochs + trainer.current_epoch)
        is_over = self.is_last and trainer.current_epoch + 1 >= epochs
        if not is_over and self.trial.should_prune():
            raise load_optuna().TrialPruned


def _logged(trainer: pl.Trainer, metric: str) -> float:
    if metric not in trainer.callback_metrics:
        raise LDLError(f"training has not measured {metric}; let it validate (trainer.limit_val_batches and such)")
    return float(trainer.callback_metrics[metric])


@quiet_trainers()
def fit_best(search: HyperparameterSearch, fold: int) -> FoldResult:
    """Train the best setting of a fold on its training set and test it; a finished fold is read."""
    folds = search.best_folds(fold)
    with suppress(LDLError):  # with fewer trials another setting was the best
        if (done := folds.read(fold)) is not None:
            return done
    with user_errors():
        return folds.fit(fold)[1]


def _open(search: HyperparameterSearch, config: Config, fold: FoldNumber) -> LDLDataModule:
    """Return the data module of a setting with a fold selected; most settings share it."""
    text = data_text(config.text())
    data: LDLDataModule = PerProcess(f"{search.identity} {text}", partial(open_data, config)).get()
    selected = 0 if fold == ALL and data.num_folds else fold
    if isinstance(selected, int) and data.fold != selected:
        data.select_fold(selected)
    return data
