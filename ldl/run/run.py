"""Fit and test, test, or predict in one directory.

Errors of the configuration and the data leave no directory behind.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldl.collective import process_rank
from ldl.command.command_line import Command
from ldl.command.messages import user_errors
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.moved import old_names
from ldl.reports.card import FinishedRun
from ldl.run import console, loggers, results
from ldl.run.parts import Parts
from ldl.run.record import changes_of
from ldl.run.resume import Launch, launch_of
from ldl.run.run_dir import cleanup_on_error, run_dir_lock
from ldl.run.training import best_weights, fit_and_test, make_report, seed_everything, test
from ldl.validation.yaml_text import load_values

__getattr__ = old_names(__name__)


def run(command: Command) -> None:
    """Fit and test, or test or predict with a checkpoint, by ``--stage``."""
    parts = Parts(command.config)
    config, values = parts.config, parts.config.values
    if values.jobs > 1 or values.scheduler is not None:
        raise LDLError(f"--jobs and --scheduler distribute folds, and --stage {values.stage} has none; leave them out")
    seed_everything(config.seed)
    task, data, folder = parts.task, parts.data, parts.folder
    with run_dir_lock(folder, read_by(parts)), cleanup_on_error(folder), user_errors():
        trainer = parts.trainer
        launch = Launch(launch_of(config), parts.checkpoint.get("global_step", -1))
        report = make_report(task, data, folder, quote=values.quote_formulas)
        trainer.callbacks += [launch, report]  # type: ignore[attr-defined]
        try:
            _announce(parts)
            if values.stage == "predict":
                trainer.predict(task, datamodule=data, return_predictions=False)
            else:
                show(folder, _fit_or_test(parts), data)
        finally:
            loggers.finish(trainer.loggers)
    if values.stage == "predict":
        predicted = results.served(data, trainer.limit_predict_batches, sum(trainer.num_predict_batches))
        console.say(f"{predicted} predictions: {folder / 'predictions.csv'}")


def _announce(parts: Parts) -> None:
    """Print the first lines of a run: its parts, its weights, and what a resumed run changes."""
    values, data, checkpoint = parts.config.values, parts.data, parts.checkpoint
    console.say(console.opening(type(parts.task.head).__name__, data, parts.trainer, values.stage))
    if values.stage == "fit" and data.val_fraction is None:
        console.say(console.held_out(data))
    if checkpoint:
        console.say(console.origin(values.ckpt_path, checkpoint))
    else:
        console.say(console.pretrained(parts.task.backbone))
    if checkpoint and values.stage == "fit":
        console.say(changes_of(checkpoint, values.ckpt_path, load_values(parts.config.text())))
    if data.trained_elsewhere:
        console.say("group leakage cannot be counted: the weights are not known to be trained on these data")


def _fit_or_test(parts: Parts) -> dict[str, Any]:
    """Return the content of ``results.json``, which is written before charts are drawn."""
    trainer, task, data, values = parts.trainer, parts.task, parts.data, parts.config.values
    content: dict[str, Any] = {}

    def write(entry: dict[str, Any], seconds: float) -> None:
        content.update(results.summarize(task, data, [entry], parts.config.seed, seconds))
        finished = FinishedRun(parts.folder, content, task, data, values.ckpt_path, values.select)
        results.write_results(finished)

    if values.stage == "test":
        test(trainer, task, data, write=write)
        return content
    fit_and_test(trainer, task, data, values.select, values.ckpt_path, write)
    if values.select == "best":
        console.say(f"tested: {best_weights(trainer)}, the best by val_kl")
    return content


def read_by(parts: Parts) -> list[Path]:
    """Return files and folders that the options of the data name."""
    options = parts.config.values.data
    values = options.init_args.as_dict().values() if "init_args" in options else ()
    paths = (parts.data.find(value) for value in values if isinstance(value, str))
    return [path for path in paths if path.exists()]


def show(folder: Path, content: dict[str, Any], data: LDLDataModule) -> None:
    """Print the results of a run, whose ``results.json`` is ``content``, and its files."""
    if process_rank() == 0:
        results.print_table(content, data.labels)
        if data.order_audit is not None and (warning := data.order_audit.warning):
            print(warning)
        print(console.closing(folder))
