"""Run a parsed configuration in one directory: train and test, test, or predict.

Errors of the configuration and the data leave no directory behind.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
from jsonargparse import Namespace
from pytorch_lightning.loggers import Logger

from ldl.checkpoint import CHECKPOINT_KEY, check_same_model, replacing
from ldl.collective import process_rank
from ldl.command.arguments import below
from ldl.command.messages import refusals
from ldl.command.parser import LDLCLI, USUAL_LOGGERS
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.reports.choice import make_report
from ldl.run import console, loggers, results
from ldl.run.loggers import MetricsFile, WandbOptions
from ldl.run.record import (
    ROWS_KEY,
    Record,
    changes_of,
    check_resumed,
    trained_fold,
)
from ldl.run.resume import (
    Launch,
    checkpoint_of,
    labels_of,
    launch_of,
    restore_data,
    restore_task,
)
from ldl.run.run_dir import choose_folder, cleanup_on_error, run_dir_lock, run_name
from ldl.run.training import (
    best_weights,
    fit_and_test,
    make_checkpoints,
    seed_everything,
    test,
)
from ldl.spec import differences, with_changes
from ldl.task import Task
from ldl.validation.yaml_text import load_values


def run(cli: LDLCLI) -> None:
    """Fit and test, or test or predict with a checkpoint, by ``--stage``."""
    config, seed = cli.config, seed_of(cli.config)
    if config.jobs > 1 or config.scheduler is not None:
        raise LDLError(f"--jobs and --scheduler distribute folds, and --stage {config.stage} has none; leave them out")
    seed_everything(seed)
    data, text = cli.make_data(config), cli.dump(config)
    checkpoint = checkpoint_of(config, text)
    task = make_task(cli, config, data, checkpoint)
    head = type(task.head).__name__
    folder = choose_folder(config, data, head)
    with run_dir_lock(folder, read_by(config, data)), cleanup_on_error(folder), refusals():
        trainer = make_trainer(cli, config, data, folder, checkpoint)
        launch = Launch(launch_of(text), checkpoint.get("global_step", -1))
        report = make_report(task, data, folder, quote=config.quote_formulas)
        trainer.callbacks += [launch, report]  # type: ignore[attr-defined]
        content: dict[str, Any] = {}

        def write(entry: dict[str, Any], seconds: float) -> None:
            content.update(results.summarize(task, data, [entry], seed, seconds))
            results.write_results(folder, content, task, data, config.ckpt_path, config.select)

        try:
            console.say(console.opening(head, data, trainer, config.stage))
            console.say(
                console.origin(config.ckpt_path, checkpoint) if checkpoint else console.pretrained(task.backbone)
            )
            if checkpoint and config.stage == "fit":
                console.say(changes_of(checkpoint, config.ckpt_path, load_values(text)))
            if data.trained_elsewhere:
                console.say("group leakage cannot be counted: the weights are not known to be trained on these data")
            if config.stage == "predict":
                trainer.predict(task, datamodule=data, return_predictions=False)
            elif config.stage == "test":
                test(trainer, task, data, write=write)
            else:
                fit_and_test(trainer, task, data, config.select, config.ckpt_path, write)
                if config.select == "best":
                    console.say(f"tested: {best_weights(trainer)}, the best by val_kl")
            if config.stage != "predict":
                show(folder, content, data)
        finally:
            loggers.finish(trainer.loggers)
    if config.stage == "predict":
        predicted = results.served(data, trainer.limit_predict_batches, sum(trainer.num_predict_batches))
        console.say(f"{predicted} predictions: {folder / 'predictions.csv'}")


def read_by(config: Namespace, data: LDLDataModule) -> list[Path]:
    """Return files and folders that the options of the data name."""
    options = config.data.init_args.as_dict() if "init_args" in config.data else {}
    found = (data.find(value) for value in options.values() if isinstance(value, str))
    return [path for path in found if path.exists()]


def seed_of(config: Namespace) -> int | None:
    """Return the seed of a configuration; None for none."""
    return None if config.seed_everything is False else int(config.seed_everything)


def make_task(
    cli: LDLCLI,
    config: Namespace,
    data: LDLDataModule,
    checkpoint: dict[str, Any],
) -> Task:
    """Make a task and build it for the data, which are set up.

    Args:
        cli: The parsed command line.
        config: The configuration.
        data: The data module.
        checkpoint: Content of the checkpoint to resume from, or to test or predict with; empty for none.

    Returns:
        The configured task, with the weights of the checkpoint if a fit resumes, or the task of the checkpoint.

    Raises:
        LDLError: The checkpoint, the data or an option does not fit.
    """
    task = cli.make_task(config)
    resumes = config.stage == "fit" and bool(checkpoint)
    if resumes:
        check_same_model(checkpoint, task.head, task.backbone)
        check_resumed(checkpoint, config.ckpt_path, load_values(cli.dump(config)))
        data.follow_labels(labels_of(checkpoint, config.ckpt_path))
    elif config.stage in ("test", "predict"):
        task = _saved_task(cli, config, data, task, checkpoint)
    else:
        task.follow_start(data)
    data.setup()
    if checkpoint:
        restore_data(data, checkpoint, config.ckpt_path)
        if config.stage != "predict":
            _compare_rows(data, checkpoint, config)
    task.build(data.labels, data.input_shape, load_weights=not checkpoint)
    with refusals():
        task.configure_optimizers()
    if resumes:
        restore_task(task, data, checkpoint, config.ckpt_path)
    return task


def _saved_task(cli: LDLCLI, config: Namespace, data: LDLDataModule, task: Task, checkpoint: dict[str, Any]) -> Task:
    if not checkpoint:
        raise LDLError(f"--stage {config.stage} needs --ckpt_path, such as RUN/checkpoints/last.ckpt")
    parts = _parts(cli, task, checkpoint)
    for name, spec in parts.items():
        config.model[name] = Namespace(spec | {"init_args": Namespace(spec["init_args"])})
    task = Task.load_from_checkpoint(
        config.ckpt_path, parts=parts, decoder=task.decoder, check_finite=task.check_finite
    )
    data.follow(task.labels, task.input_shape, task.preprocessing)
    return task


def _parts(cli: LDLCLI, task: Task, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Return the specs of head and backbone of a checkpoint, with those options of the command line that may change.

    Options of configuration files have no effect. Raises LDLError for an option that only training can change.
    """
    parts = {}
    for name, component in (("head", task.head), ("backbone", task.backbone)):
        spec, given = checkpoint[CHECKPOINT_KEY][name], below(cli.given, f"model.{name}")

        def asked(where: str, given: list[str] = given) -> bool:
            return any(where == option or where.startswith((f"{option}.", f"{option}[")) for option in given if option)

        parts[name], changes = with_changes(spec, component, asked=asked)
        if given and (found := ", ".join(differences(spec, component, asked=asked))):
            raise LDLError(f"the checkpoint's {name} has {found}: --stage test and predict take it as it was trained")
        for change in changes:
            console.say(f"{name}: {change}")
    return parts


def _compare_rows(data: LDLDataModule, checkpoint: dict[str, Any], config: Namespace) -> None:
    """Raise LDLError if held-out rows were for training; set the fold of a test to the training rows of the
    checkpoint."""
    trained = trained_fold(data, checkpoint, config.ckpt_path, validates=config.stage == "fit")
    if trained is None and (config.stage == "test" or ROWS_KEY in checkpoint):
        data.trained_elsewhere, data.leaky = True, None
    elif trained is not None and config.stage == "test":
        data.split = trained


def make_trainer(
    cli: LDLCLI,
    config: Namespace,
    data: LDLDataModule,
    folder: Path,
    checkpoint: dict[str, Any],
    group: str | None = None,
) -> pl.Trainer:
    """Make the trainer of one run, and its directory with the complete ``config.yaml``.

    Args:
        cli: The parsed command line.
        config: The configuration.
        data: The data module, set up.
        folder: The run directory.
        checkpoint: Content of the checkpoint to start from; empty for none.
        group: Name of the cross-validation whose fold this is; None for a run of its own.

    Raises:
        LDLError: The trainer, the checkpoint or the directory does not fit the configuration.
    """
    text, first_step = cli.dump(config, data.chosen), checkpoint.get("global_step", 0)
    content = load_values(text)
    callbacks: list[pl.Callback] = []
    if config.stage == "fit":
        callbacks += _make_checkpoints(config, data, folder)
    if config.trainer.enable_progress_bar is not False:
        callbacks.append(console.progress(group is not None, config.trainer.enable_progress_bar is True))
    ours: dict[str, Any] = {"default_root_dir": str(folder)}
    if config.trainer.enable_model_summary is None:
        ours["enable_model_summary"] = False
    named = config.trainer.logger
    adds = isinstance(named, list) and any(each.class_path == USUAL_LOGGERS for each in named)
    usual: list[Logger] = [MetricsFile(folder, first_step)]
    if (named in (None, True) or adds) and not config.trainer.fast_dev_run:
        options = config.wandb if isinstance(config.wandb, WandbOptions) else WandbOptions(**config.wandb.as_dict())
        name = run_name(folder, data, config.model.head.class_path.rpartition(".")[2])
        if group is not None:
            name, options = f"{group}_fold_{data.fold}", replace(options, group=options.group or group)
        announces, of_fold = group is None or data.fold == 0, group is not None
        usual = loggers.make_loggers(folder, options, content, first_step, name, announces, of_fold)
        if not adds:
            ours["logger"] = usual
    trainer = cli.make_trainer(config, [*callbacks, Record(content)], () if "logger" in ours else usual, **ours)
    trainer.loggers = [
        logger if isinstance(logger, MetricsFile) else loggers.fault_tolerant(logger) for logger in trainer.loggers
    ]
    if process_rank() == 0:
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(folder / "config.yaml") as file:
            file.write(text.encode())
    return trainer


def _make_checkpoints(config: Namespace, data: LDLDataModule, folder: Path) -> list[pl.Callback]:
    if config.trainer.enable_checkpointing is False:
        return []
    resumed = config.ckpt_path and Path(config.ckpt_path).resolve().parent
    if config.select == "best" and resumed and resumed != (folder / "checkpoints").resolve():
        raise LDLError(
            "--select best finds the best checkpoint of a resumed run in its run directory only; give its --run_dir"
        )
    return make_checkpoints(folder, data, config.select)


def show(folder: Path, content: dict[str, Any], data: LDLDataModule) -> None:
    """Print the results of a run, whose ``results.json`` is ``content``, and its files."""
    if process_rank() == 0:
        results.print_table(content, data.labels)
        if data.order_audit is not None and (warning := data.order_audit.warning):
            print(warning)
        print(console.closing(folder))
