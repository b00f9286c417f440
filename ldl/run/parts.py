"""The data, task and trainer of a run, built from its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.callbacks import ProgressBar
from pytorch_lightning.loggers import Logger
from pytorch_lightning.plugins.environments import LightningEnvironment

from ldl.checkpoint import CHECKPOINT_KEY, check_same_model, replacing, save_atomically
from ldl.collective import process_rank
from ldl.command.arguments import below
from ldl.command.config import Config
from ldl.command.configs import USUAL_LOGGERS
from ldl.command.messages import user_errors
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.run import console, loggers
from ldl.run.loggers import FaultTolerant, MetricsFile, UsualLoggers
from ldl.run.processes import check_strategy, is_single_in_slurm
from ldl.run.record import ROWS_KEY, Record, check_resumed, trained_fold
from ldl.run.resume import checkpoint_of, labels_of, restore_data, restore_task
from ldl.run.run_dir import choose_folder, run_name
from ldl.run.run_options import WandbOptions
from ldl.run.signals import SignalHandlers, listen_for_requeue, watch_processes
from ldl.run.training import make_checkpoints
from ldl.spec import differences, with_changes
from ldl.task import Task
from ldl.validation.yaml_text import load_values


class Parts:
    """The data, task and trainer of one run, each built at its first use and only once.

    Args:
        config: The configuration.
        data: The data module, set up, if runs share it; None builds the configured one.
        folder: The run directory; None chooses one.
        group: Name of the cross-validation whose fold this is; None for a run of its own.
    """

    def __init__(
        self, config: Config, data: LDLDataModule | None = None, folder: Path | None = None, group: str | None = None
    ) -> None:
        self.config, self.group = config, group
        if data is not None:
            self.data = data
        if folder is not None:
            self.folder = folder

    @cached_property
    def data(self) -> LDLDataModule:
        """The data module; the task sets it up."""
        data: LDLDataModule = self.config.instantiate("data")
        return data

    @cached_property
    def checkpoint(self) -> dict[str, Any]:
        """Content of the checkpoint to resume from, or to test or predict with; empty for none."""
        return {} if self.group else checkpoint_of(self.config)

    @cached_property
    def task(self) -> Task:
        """The task, built for the data; see :func:`make_task`."""
        with user_errors():  # heads and backbones may be a user's own
            return make_task(self)

    @cached_property
    def folder(self) -> Path:
        """The run directory."""
        return choose_folder(self.config.values, self.data, type(self.task.head).__name__)

    @cached_property
    def trainer(self) -> pl.Trainer:
        """The trainer; see :func:`make_trainer`."""
        return make_trainer(self)


def make_task(parts: Parts) -> Task:
    """Make a task and build it for the data, which are set up.

    Returns:
        The configured task, with the weights of the checkpoint if a fit resumes, or the task of the checkpoint.

    Raises:
        LDLError: The checkpoint, the data or an option does not fit.
    """
    config, data, checkpoint = parts.config, parts.data, parts.checkpoint
    stage, path = config.values.stage, config.values.ckpt_path
    task: Task = config.instantiate("model")
    resumes = stage == "fit" and bool(checkpoint)
    if resumes:
        check_same_model(checkpoint, task.head, task.backbone)
        check_resumed(checkpoint, path, load_values(config.text()))
        data.follow_labels(labels_of(checkpoint, path))
    elif stage in ("test", "predict"):
        task = _saved_task(config, data, task, checkpoint)
    else:
        task.follow_start(data)
    data.setup()
    if checkpoint:
        restore_data(data, checkpoint, path)
        if stage != "predict":
            _compare_rows(data, checkpoint, config.values)
    task.build(data.labels, data.input_shape, load_weights=not checkpoint, raters=data)
    task.configure_optimizers()
    if resumes:
        restore_task(task, data, checkpoint, path)
    return task


def _saved_task(config: Config, data: LDLDataModule, task: Task, checkpoint: dict[str, Any]) -> Task:
    values = config.values
    if not checkpoint:
        raise LDLError(f"--stage {values.stage} needs --ckpt_path, such as RUN/checkpoints/last.ckpt")
    specs = _saved_specs(config, task, checkpoint)
    for name, spec in specs.items():
        values.model[name] = Namespace(spec | {"init_args": Namespace(spec["init_args"])})
    task = Task.load_from_checkpoint(
        values.ckpt_path, parts=specs, decoder=task.decoder, check_finite=task.check_finite
    )
    data.follow(task.labels, task.input_shape, task.preprocessing)
    return task


def _saved_specs(config: Config, task: Task, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return the specs of head and backbone of a checkpoint, with those options of the command line that may change.

    Options of configuration files have no effect. Raises LDLError for an option that only training can change.
    """
    specs = {}
    for name, component in (("head", task.head), ("backbone", task.backbone)):
        saved, options = checkpoint[CHECKPOINT_KEY][name], below(config.arguments, f"model.{name}")

        def asked(where: str, options: list[str] = options) -> bool:
            return any(
                where == option or where.startswith((f"{option}.", f"{option}[")) for option in options if option
            )

        specs[name], changes = with_changes(saved, component, asked=asked)
        if options and (fixed := ", ".join(differences(saved, component, asked=asked))):
            raise LDLError(f"the checkpoint's {name} has {fixed}: --stage test and predict take it as it was trained")
        for change in changes:
            console.say(f"{name}: {change}")
    return specs


def _compare_rows(data: LDLDataModule, checkpoint: dict[str, Any], values: Namespace) -> None:
    """Raise LDLError if held-out rows were for training; set the fold of a test to the training rows of the
    checkpoint."""
    trained = trained_fold(data, checkpoint, values.ckpt_path, validates=values.stage == "fit")
    if trained is None and (values.stage == "test" or ROWS_KEY in checkpoint):
        data.trained_elsewhere, data.leaky = True, None
    elif trained is not None and values.stage == "test":
        data.split = trained


def make_trainer(parts: Parts) -> pl.Trainer:
    """Make the trainer of a run whose data are set up, and its directory with the complete ``config.yaml``.

    Raises:
        LDLError: The trainer, the checkpoint or the directory does not fit the configuration.
    """
    config, values, data, folder = parts.config, parts.config.values, parts.data, parts.folder
    text, first_step = config.text(data.chosen), parts.checkpoint.get("global_step", 0)
    content = load_values(text)
    callbacks: list[pl.Callback] = []
    if values.stage == "fit" and values.trainer.enable_checkpointing is not False:
        resumed = values.ckpt_path and Path(values.ckpt_path).resolve().parent
        if values.select == "best" and resumed and resumed != (folder / "checkpoints").resolve():
            raise LDLError(
                "--select best finds the best checkpoint of a resumed run in its run directory only; give its --run_dir"
            )
        callbacks += make_checkpoints(folder, data, values.select)
    bars = values.trainer.enable_progress_bar
    if bars is not False:
        callbacks.append(console.progress(parts.group is not None, bars is True))
    overrides: dict[str, Any] = {"default_root_dir": str(folder)}
    if values.trainer.enable_model_summary is None:
        overrides["enable_model_summary"] = False
    named = values.trainer.logger
    adds = isinstance(named, list) and any(each.class_path == USUAL_LOGGERS for each in named)
    usual: list[Logger] = [MetricsFile(folder, first_step)]
    if (named in (None, True) or adds) and not values.trainer.fast_dev_run:
        usual = _make_loggers(parts, content, first_step)
        if not adds:
            overrides["logger"] = usual
    trainer = build_trainer(config, [*callbacks, Record(content)], () if "logger" in overrides else usual, **overrides)
    trainer.loggers = [
        logger if isinstance(logger, MetricsFile) else FaultTolerant.around(logger) for logger in trainer.loggers
    ]
    if process_rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / "config.yaml") as file:
            file.write(text.encode())
    return trainer


def _make_loggers(parts: Parts, content: dict[str, Any], first_step: int) -> list[Logger]:
    """Return the loggers that a run has by default; the folds of a cross-validation share a group of wandb."""
    options = parts.config.values.wandb
    options = options if isinstance(options, WandbOptions) else WandbOptions(**options.as_dict())
    data, group = parts.data, parts.group
    if group is None:
        name = run_name(parts.folder, data, parts.config.head)
        return loggers.make_loggers(parts.folder, options, content, first_step, name)
    options = replace(options, group=options.group or group)
    name, announces = f"{group}_fold_{data.fold}", data.fold == 0
    return loggers.make_loggers(parts.folder, options, content, first_step, name, announces, of_fold=True)


def build_trainer(
    config: Config, callbacks: Sequence[pl.Callback], more_loggers: Sequence[Logger] = (), **overrides: Any
) -> pl.Trainer:
    """Build the trainer of a configuration; it writes each checkpoint completely or not at all.

    Args:
        config: The configuration.
        callbacks: Callbacks besides the configured ones; those that the configuration has too are left out.
        more_loggers: Loggers that are added if the configuration names loggers, in place of ``UsualLoggers``.
        **overrides: Arguments of the trainer that replace the configured ones.

    Raises:
        LDLError: Lightning does not accept the options, or ldl does not support the strategy.
    """
    arguments = {**dict(config.instantiate("trainer").items(branches=True, nested=False)), **overrides}
    configured = _as_list(arguments.pop("callbacks"))
    # Lightning accepts one callback per key, and one progress bar.
    keys = {callback.state_key for callback in configured}
    kinds = (ProgressBar,) if any(isinstance(callback, ProgressBar) for callback in configured) else ()
    callbacks = [each for each in callbacks if each.state_key not in keys and not isinstance(each, kinds)]
    if more_loggers and arguments["logger"] not in (None, True, False):
        named = [logger for logger in _as_list(arguments["logger"]) if not isinstance(logger, UsualLoggers)]
        arguments["logger"] = [*named, *more_loggers]
    check_strategy(arguments["strategy"])
    if arguments["barebones"]:
        raise LDLError("trainer.barebones logs and saves nothing, and a run does both; use it with pl.Trainer alone")
    plugins = arguments["plugins"]
    if is_single_in_slurm(arguments):
        arguments["plugins"] = LightningEnvironment()
    with user_errors():
        listen_for_requeue(plugins)
        trainer = pl.Trainer(**arguments, callbacks=[SignalHandlers(), *configured, *callbacks])
    check_strategy(trainer.strategy)  # which Lightning has chosen for "auto"
    if arguments["sync_batchnorm"] and trainer.world_size > 1 and trainer.strategy.root_device.type == "cpu":
        raise LDLError("trainer.sync_batchnorm needs GPUs, and this run has processes on CPUs; leave it out")
    return watch_processes(save_atomically(trainer))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []
