"""What ``train.py`` does with a configuration: train and test, test, or predict, in one directory.

What is wrong with the configuration or the data is found before the directory is made, or the directory is removed: a
refused run leaves nothing behind.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import yaml
from jsonargparse import Namespace

from ldl.checkpoint import CHECKPOINT_KEY, check_same_model
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.reports.choice import report_for
from ldl.running import console, results, tracking
from ldl.running.arguments import below
from ldl.running.folder import nothing_left
from ldl.running.lock import alone_in
from ldl.running.naming import choose_folder, run_name
from ldl.running.parser import LDLCLI
from ldl.running.refusals import refusals
from ldl.running.restart import Launch, checkpoint_of, launch_of
from ldl.running.resume import check_model, rehearse_model, rehearse_trainer, restore_data
from ldl.running.trained_rows import trained_fold
from ldl.running.training import (
    best_weights,
    check_validates,
    fit_and_test,
    make_checkpoints,
    measure,
    seed_everything,
)
from ldl.spec import differences, with_changes
from ldl.task import Task


def run(cli: LDLCLI) -> None:
    """Fit and test, or test or predict with a checkpoint, as ``--stage`` says."""
    config, seed = cli.config, seed_of(cli.config)
    if config.jobs > 1 or config.scheduler is not None:
        given = "--scheduler" if config.scheduler is not None else f"--jobs {config.jobs}"
        raise LDLError(f"{given} shares folds among processes, and --stage {config.stage} has none; leave it out")
    seed_everything(seed)
    data, text = cli.make_data(config), cli.dump(config)
    checkpoint = checkpoint_of(config, text)
    task = make_task(cli, config, data, checkpoint)
    head = type(task.head).__name__
    folder = choose_folder(config, data, head)
    with alone_in(folder), nothing_left(folder), refusals():
        trainer = make_trainer(cli, config, data, folder, checkpoint)
        launch = Launch(launch_of(text), checkpoint.get("global_step", -1))
        trainer.callbacks += [launch, report_for(task, data, folder)]  # type: ignore[attr-defined]
        seconds = 0.0
        try:
            console.say(console.opening(head, data, trainer, config.stage))
            console.say(
                console.origin(config.ckpt_path, checkpoint) if checkpoint else console.pretrained(task.backbone)
            )
            if data.trained_elsewhere:
                console.say("leaks cannot be counted: the weights are not known to be trained on these data")
            if config.stage == "predict":
                trainer.predict(task, datamodule=data, return_predictions=False)
            else:
                if config.stage == "test":
                    entry = measure(trainer, task, data)
                else:
                    entry, seconds = fit_and_test(trainer, task, data, config.select, config.ckpt_path)
                    if config.select == "best":
                        console.say(f"tested: {best_weights(trainer)}, the best by val_kl")
                content = results.summarize(task, data, [entry], seed, seconds)
                results.write_results(folder, content, task, data, config.ckpt_path)
                show(folder, content, data)
        finally:
            tracking.finish(trainer.loggers)
    if config.stage == "predict" and process_rank() == 0:
        predicted = results.served(data, trainer.limit_predict_batches, sum(trainer.num_predict_batches))
        print(f"{predicted} predictions: {folder / 'predictions.csv'}")


def seed_of(config: Namespace) -> int | None:
    """The seed of a configuration; None for none."""
    return None if config.seed_everything is False else int(config.seed_everything)


def make_task(cli: LDLCLI, config: Namespace, data: LDLDataModule, checkpoint: dict[str, Any]) -> Task:
    """The configured task, or that of the checkpoint to test or predict with, built for the data.

    Of a run that goes on it has the weights.
    """
    task = cli.make_task(config)
    if config.stage == "fit" and checkpoint:
        check_same_model(checkpoint, task.head, task.backbone)
    elif config.stage in ("test", "predict"):
        if not checkpoint:
            raise LDLError(f"--stage {config.stage} needs --ckpt_path, such as RUN/checkpoints/last.ckpt")
        parts = _parts(cli, task, checkpoint)
        task = Task.load_from_checkpoint(
            config.ckpt_path, parts=parts, decoder=task.decoder, check_finite=task.check_finite
        )
        data.follow(task.labels, task.input_shape, task.preprocessing)
    data.setup()
    if checkpoint:
        restore_data(data, checkpoint, config.ckpt_path)
        _tell_apart(data, checkpoint, config)
    if config.stage == "fit" and checkpoint:
        check_model(task, data, checkpoint, config.ckpt_path)
    task.build(data.labels, data.input_shape, load_weights=not checkpoint)
    try:
        task.configure_optimizers()
    except (ValueError, TypeError) as error:
        raise LDLError(f"optimiser or scheduler refuses its options: {' '.join(str(error).split())}") from error
    if config.stage == "fit" and checkpoint:
        rehearse_model(task, checkpoint, config.ckpt_path)
        # The trainer computes features of fixed layers before it loads the weights, and of others twice.
        task.load_state_dict(checkpoint["state_dict"])
    return task


def _parts(cli: LDLCLI, task: Task, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Head and backbone of a checkpoint, in specs, with the options of the command line that may be changed.

    What configurations say of them does not count. Raises LDLError for an option of the command line that only training
    can change.
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


def _tell_apart(data: LDLDataModule, checkpoint: dict[str, Any], config: Namespace) -> None:
    """Refuse to test what a checkpoint was trained on; let the data to test know what it was trained on."""
    if config.stage == "predict":
        return
    trained = trained_fold(data, checkpoint, config.ckpt_path)
    if config.stage == "test" and trained is not None:
        data.split = trained
    elif config.stage == "test":
        data.trained_elsewhere, data.leaky = True, None


def make_trainer(
    cli: LDLCLI,
    config: Namespace,
    data: LDLDataModule,
    folder: Path,
    checkpoint: dict[str, Any],
    group: str | None = None,
) -> pl.Trainer:
    """The trainer of one run, whose directory is made, with the complete configuration in it."""
    text = cli.dump(config)
    callbacks: list[pl.Callback] = []
    if config.stage == "fit":
        callbacks += _make_checkpoints(config, data, folder)
    if config.trainer.enable_progress_bar is not False:
        callbacks.append(console.progress(group is not None, config.trainer.enable_progress_bar is True))
    ours: dict[str, Any] = {"default_root_dir": str(folder)}
    if config.trainer.enable_model_summary is None:
        ours["enable_model_summary"] = False
    if config.trainer.logger in (None, True) and not config.trainer.fast_dev_run:
        options = config.wandb
        options = options if isinstance(options, tracking.WandbOptions) else tracking.WandbOptions(**options.as_dict())
        name = run_name(folder, data, config.model.head.class_path.rpartition(".")[2])
        if group is not None:
            name, options = f"{group}_fold_{data.fold}", replace(options, group=options.group or group)
        first_step, tells = checkpoint.get("global_step", 0), group is None or data.fold == 0
        content, of_fold = yaml.safe_load(text), group is not None
        ours["logger"] = tracking.make_loggers(folder, options, content, first_step, name, tells, of_fold)
    trainer = cli.make_trainer(config, callbacks, **ours)
    if config.stage == "fit" and config.select == "best":
        check_validates(trainer)
    if config.stage == "fit" and checkpoint:
        rehearse_trainer(trainer, checkpoint, config.ckpt_path)
    if process_rank() == 0:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "config.yaml").write_text(text, encoding="utf-8")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", error)
            raise LDLError(f"--run_dir {folder} cannot be written: {reason}; give another folder") from error
    return trainer


def _make_checkpoints(config: Namespace, data: LDLDataModule, folder: Path) -> list[pl.Callback]:
    if config.trainer.enable_checkpointing is False:
        if config.select == "best":
            raise LDLError("--select best needs checkpoints; leave --trainer.enable_checkpointing false out")
        return []
    resumed = config.ckpt_path and Path(config.ckpt_path).resolve().parent
    if config.select == "best" and resumed and resumed != (folder / "checkpoints").resolve():
        raise LDLError(
            "--select best knows the best checkpoint of the first part only there; resume with --run_dir of it"
        )
    return make_checkpoints(folder, data, config.select)


def show(folder: Path, content: dict[str, Any], data: LDLDataModule) -> None:
    """Print what a run came to, whose ``results.json`` is ``content``, and where it lies."""
    if process_rank() == 0:
        results.print_table(content, data.labels)
        if data.order_audit is not None and (warning := data.order_audit.warning):
            print(warning)
        print(console.closing(folder))
