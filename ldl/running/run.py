"""One run: train and test, test or predict from a checkpoint, with everything it leaves in its directory."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import yaml
from jsonargparse import Namespace
from pytorch_lightning.callbacks import ModelCheckpoint, RichProgressBar

from ldl.checkpoint import check_same_model, read_checkpoint
from ldl.collective import process_rank
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.reports.files import write_json
from ldl.running import results, tracking
from ldl.running.parser import LDLCLI
from ldl.task import Task

RUN_DIR_VARIABLE = "LDL_RUN_DIR"
"""Rank 0 chooses the run directory; the processes it launches read it here."""


class Run:
    """The task, data module and trainer of one configuration, in one run directory.

    Everything that can be wrong with the configuration or the data is found while this is made; the directory
    comes after that, so a refused run leaves nothing behind.

    Args:
        cli: The parsed command line.
        config: Its configuration, or a changed clone of it.
        folder: The run directory; None chooses one.
        wandb_group: Group of the wandb run, for cross-validation.
        draw: Draw charts.
    """

    def __init__(
        self,
        cli: LDLCLI,
        config: Namespace,
        folder: Path | None = None,
        wandb_group: str | None = None,
        draw: bool = True,
    ) -> None:
        self.config = config
        if self.seed is not None:
            pl.seed_everything(self.seed, workers=True, verbose=False)
        self.task, self.data = cli.instantiate(config)
        self._check_checkpoint()
        self.data.setup()
        self.task.build(self.data.labels, self.data.input_shape)
        self._check_optimizer()
        self.folder = folder or choose_folder(config, self.task, self.data)
        self.text = cli.dump(config)
        self.checkpoints = self._make_checkpoints()
        callbacks: list[pl.Callback] = [*self.checkpoints.values(), self.data.report(self.folder, draw)]
        if config.trainer.enable_progress_bar is not False:
            callbacks.append(RichProgressBar())
        self.trainer = cli.make_trainer(
            callbacks, logger=self._make_loggers(wandb_group), default_root_dir=str(self.folder)
        )

    def _check_checkpoint(self) -> None:
        config = self.config
        checkpoint = read_checkpoint(config.ckpt_path) if config.ckpt_path is not None else {}
        self.first_step = int(checkpoint.get("global_step", 0))
        if config.stage == "fit" and checkpoint:
            check_same_model(checkpoint, self.task.head, self.task.backbone)
        elif config.stage in ("test", "predict"):
            if config.ckpt_path is None:
                raise LDLError(f"--stage {config.stage} needs --ckpt_path, such as RUN/checkpoints/last.ckpt")
            self.task = Task.load_from_checkpoint(config.ckpt_path, decoder=self.task.decoder)
            self.data.follow(self.task.labels, self.task.input_shape, self.task.preprocessing)

    def _check_optimizer(self) -> None:
        try:
            self.task.configure_optimizers()
        except (ValueError, TypeError) as error:
            raise LDLError(f"optimiser or scheduler refuses its options: {' '.join(str(error).split())}") from error

    def _make_loggers(self, wandb_group: str | None) -> Any:
        if self.config.trainer.logger not in (None, True) or self.config.trainer.fast_dev_run:
            return self.config.trainer.logger
        options = self.config.wandb
        options = options if isinstance(options, tracking.WandbOptions) else tracking.WandbOptions(**options.as_dict())
        if wandb_group and not options.group:
            options = replace(options, group=wandb_group)
        return tracking.make_loggers(self.folder, options, yaml.safe_load(self.text), self.first_step)

    def _make_checkpoints(self) -> dict[str, ModelCheckpoint]:
        if self.config.trainer.enable_checkpointing is False or self.config.stage in ("test", "predict"):
            return {}
        # At the end of the epoch, not of its validation: only from there does Lightning resume exactly.
        options: dict[str, Any] = {
            "dirpath": self.folder / "checkpoints",
            "save_on_train_epoch_end": True,
            "enable_version_counter": False,
            "auto_insert_metric_name": False,
        }
        saved = {"last": ModelCheckpoint(filename="last", **options)}
        if len(self.data.split.val):
            saved["best"] = ModelCheckpoint(filename="best", monitor="val_kl", mode="min", **options)
        elif self.config.select == "best":
            raise LDLError("--select best needs a validation part; set data.val_fraction above 0")
        if self.config.select == "best" and self.config.ckpt_path and not self._resumes_in_place():
            raise LDLError(
                "--select best knows the best checkpoint of the first part only there; resume with --run_dir of it"
            )
        return saved

    def _resumes_in_place(self) -> bool:
        return Path(self.config.ckpt_path).resolve().parent == (self.folder / "checkpoints").resolve()

    def open(self) -> None:
        """Create the directory with the complete configuration."""
        if process_rank() == 0:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                (self.folder / "config.yaml").write_text(self.text)
            except OSError as error:
                raise LDLError(
                    f"--run_dir {self.folder} cannot be written: {error.strerror}; give another folder"
                ) from error

    def fit_and_test(self) -> tuple[dict[str, Any], float]:
        """Train, then test the selected weights; returns the entry of ``results.json`` and the seconds of fitting."""
        self.open()
        start = time.perf_counter()
        self.trainer.fit(self.task, datamodule=self.data, ckpt_path=self.config.ckpt_path, weights_only=True)
        seconds = time.perf_counter() - start
        return self.test(self._best_checkpoint() if self.config.select == "best" else None), seconds

    def _best_checkpoint(self) -> str:
        # Found by its key: a callback of the configuration may have taken the place of ours.
        key = self.checkpoints["best"].state_key
        saved = (callback for callback in self.trainer.checkpoint_callbacks if isinstance(callback, ModelCheckpoint))
        return next(callback.best_model_path for callback in saved if callback.state_key == key)

    def test(self, ckpt_path: str | None) -> dict[str, Any]:
        """Test the task as it is, or a checkpoint; returns the fold's entry of ``results.json``."""
        self.open()
        self.trainer.test(self.task, datamodule=self.data, ckpt_path=ckpt_path, weights_only=True, verbose=False)
        return results.fold_result(self.data, self.trainer.callback_metrics)

    def predict(self, ckpt_path: str) -> None:
        """Write ``predictions.csv`` and charts for the data module's instances to predict."""
        self.open()
        self.trainer.predict(
            self.task, datamodule=self.data, ckpt_path=ckpt_path, weights_only=True, return_predictions=False
        )

    def finish(self, folds: list[dict[str, Any]], fit_seconds: float, table: bool = True) -> None:
        """Write ``results.json`` and print the final table, on rank 0."""
        if process_rank() == 0:
            content = results.summarize(self.task, self.data, folds, self.seed, fit_seconds)
            write_json(self.folder / "results.json", content)
            if table:
                results.print_table(content, self.task.labels.unit)
                print(f"results: {self.folder / 'results.json'}")

    @property
    def seed(self) -> int | None:
        """Seed of the run; None where it was not seeded."""
        return None if self.config.seed_everything is False else int(self.config.seed_everything)

    def close(self) -> None:
        """Close the loggers."""
        tracking.finish(self.trainer.loggers)


def choose_folder(config: Namespace, task: Task, data: LDLDataModule) -> Path:
    """The run directory: as given, as rank 0 chose it, or ``runs/DATA_HEAD/TIME``."""
    if config.run_dir:
        return Path(config.run_dir)
    if RUN_DIR_VARIABLE not in os.environ:
        name = f"{type(data).__name__}_{type(task.head).__name__}".lower()
        folder = base = Path("runs") / name / time.strftime("%Y%m%d-%H%M%S")
        number = 1
        while folder.exists():
            number += 1
            folder = base.with_name(f"{base.name}-{number}")
        os.environ[RUN_DIR_VARIABLE] = str(folder)
    return Path(os.environ[RUN_DIR_VARIABLE])
