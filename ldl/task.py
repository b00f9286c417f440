"""The LightningModule: backbone, head, metrics, optimiser."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.cli import LRSchedulerCallable, OptimizerCallable
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from ldl.backbones.base import Backbone, Identity, WholeImages
from ldl.backbones.fixed import serve_fixed
from ldl.batch import global_rows, keep_truth, learned_pixels, loss_scale, with_counts
from ldl.batch import mixup as mix_pairs
from ldl.callbacks import Calibrate, Compile, Compiled, Conform, Resume, Settle, Units, drivers, write_down
from ldl.checkpoint import CHECKPOINT_KEY, check_same_inputs, check_same_model, describe, load_model, read_checkpoint
from ldl.checks.contract import check_built, check_features, check_forward, check_losses, check_made, check_output
from ldl.checks.missing import check_missing
from ldl.checks.numbers import watch_loss, watch_prediction
from ldl.checks.pairing import check_bags, check_images
from ldl.checks.settings import check_settings
from ldl.checks.transfer import begin_from
from ldl.checks.watch import Watch
from ldl.collective import current_collective
from ldl.edges.tracing import trace
from ldl.errors import LDLError
from ldl.head import FittedHead, Head, ImageHead, check_memory, memory_rows
from ldl.labels import Decoder, LabelSpace
from ldl.methods.conformal import Conformal, interval_columns
from ldl.methods.temperature import temper
from ldl.metrics.groups import train_counts
from ldl.metrics.losses import LossMeans
from ldl.metrics.stage import StageMetrics
from ldl.schedule import parameter_groups, schedule, step_plateau
from ldl.spec import from_spec

MEANS_KEY = "train_means"


class Task(pl.LightningModule):
    """Trains a head on a backbone to output label distributions.

    ``Trainer(plugins=[AtomicCheckpointIO()])`` writes its checkpoints whole, as ``train.py`` does.

    Args:
        head: The head, by class name.
        backbone: What turns inputs into features; None is ``Identity``, or ``WholeImages`` for heads that take these.
        optimizer: Any torch optimiser. A backbone with a learning rate of its own is a second group.
        lr_scheduler: Any torch scheduler, or None.
        lr_interval: Whether the scheduler steps once an ``epoch`` or at every ``step``.
        lr_monitor: What ReduceLROnPlateau watches.
        mixup: Mix pairs of training instances, no bags, with shares from Beta(mixup, mixup); 0 mixes none.
        decoder: How a distribution becomes a value, recorded with the errors: ``expectation``, ``argmax``, ``median``.
        check_finite: Stop where a loss is not finite or a prediction is no distribution, before the next step.
        calibrate: Divide the logarithms of predictions by a temperature that is fitted on the validation part.
        conformal: Calibrate intervals and sets by ``groups``, such as persons, or ``rows`` of validation, or ``none``.
        compile: Have torch compile the training step of the ``head`` or ``all``, or ``none`` of it.
        start: A checkpoint of ldl to begin from, with the same backbone, head and labels, as for fine-tuning.
        crisp: Teach pixels up to so far beside the model's own ridges, on maps, the first label; 0 teaches the votes.
    """

    _jit_is_scripting = True  # torch.jit.trace asks for every attribute, and Lightning has no ``trainer`` to show

    def __init__(
        self,
        head: Head,
        backbone: Backbone | None = None,
        optimizer: OptimizerCallable = torch.optim.AdamW,
        lr_scheduler: LRSchedulerCallable | None = None,
        lr_interval: Literal["epoch", "step"] = "epoch",
        lr_monitor: str = "val_kl",
        mixup: float = 0.0,
        decoder: Decoder = "expectation",
        check_finite: bool = True,
        calibrate: bool = False,
        conformal: Units = "groups",
        compile: Compiled = "none",
        crisp: float = 0.0,
        start: str | None = None,
    ) -> None:
        super().__init__()
        backbone = backbone or (WholeImages() if isinstance(head, ImageHead) else Identity())
        check_made(head, backbone)
        check_settings(head, backbone.gives_maps, mixup, crisp, decoder)
        self.head, self.backbone, self.compiled = head, backbone, Compile(compile, head, backbone)
        self.optimizer, self.mixup, self.crisp, self.start = optimizer, mixup, crisp, start
        self.lr_scheduler, self.lr_interval, self.lr_monitor = lr_scheduler, lr_interval, lr_monitor
        self.decoder, self.check_finite = decoder, check_finite
        self.calibrate, self.temperature = calibrate, 1.0
        self.conformal, self.calibration = conformal, cast("Conformal | None", None)
        self.watch, self.kept_contract, self.train_means = Watch(), False, LossMeans()
        self.input_shape: tuple[int, ...] | None = None
        self.preprocessing: dict[str, Any] | None = None
        self.train_values: np.ndarray | None = None
        if isinstance(head, FittedHead):
            # DistributedDataParallel and optimisers refuse a module without parameters.
            self.anchor = nn.Parameter(torch.zeros(()))

    @property
    def labels(self) -> LabelSpace:
        """The label space of the head."""
        return self.head.labels

    @property
    def gives_maps(self) -> bool:
        """Whether there is a distribution at every pixel, (B, H, W, C)."""
        return self.backbone.gives_maps

    def build(self, labels: LabelSpace, input_shape: tuple[int, ...], load_weights: bool = True) -> None:
        """Create backbone, head and metrics for this label space and shape of one input; later calls do nothing.

        Raises LDLError: backbone or head cannot be made so, or was built for another label space.
        """
        if self.input_shape is not None:
            check_same_inputs((self.labels, self.input_shape), (labels, tuple(input_shape)))
            return
        check_images(self.head, self.backbone, isinstance(self.backbone, WholeImages))
        width = self.backbone.build(tuple(input_shape), load_weights)
        check_bags(self.head, self.backbone.gives_bags)
        check_memory(self.head, width, labels)
        self.head.build(width, labels)
        check_built(self.head, width, labels)
        if self.start and load_weights:
            begin_from(self.start, self.head, self.backbone, labels)
        self.input_shape = tuple(input_shape)
        self.val_metrics = StageMetrics(labels, "val_", self.gives_maps, details=False)
        self.test_metrics = StageMetrics(labels, "test_", self.gives_maps)

    def setup(self, stage: str) -> None:
        """Build from the trainer's data module, where ``build`` was not called before."""
        keep_truth(self.trainer.precision_plugin)
        data = getattr(self.trainer, "datamodule", None)
        if data is not None and hasattr(data, "labels"):
            self.build(data.labels, data.input_shape)
            check_missing(self.head, getattr(data, "has_missing", False))
            data.prepare_as(None if stage == "fit" else self.preprocessing)
            self.preprocessing = data.preprocessing if stage == "fit" else self.preprocessing or data.preprocessing
            if stage != "predict":
                self.train_values = data.train_values if self.labels.kind == "ordinal" and not self.gives_maps else None
            serve_fixed(self.backbone, self.trainer)
        elif self.input_shape is None:
            raise LDLError("Task knows no labels; pass Trainer.fit a data module of ldl, or call task.build first")

    def configure_callbacks(self) -> list[pl.Callback]:
        """What drives an alternating or a fitted head, and what every run needs."""
        return [*drivers(self.head, self.compiled, self._trainer), Resume(), Settle(), Calibrate(), Conform()]

    def configure_optimizers(self) -> Any:
        own = self.backbone.tuned_parameters() if self.backbone.lr is not None else []
        optimizer = self.optimizer(parameter_groups(self.parameters(), own, self.backbone.lr))
        if self.lr_scheduler is None:
            return optimizer
        scheduler = schedule(self.lr_scheduler(optimizer), self.lr_interval, self.lr_monitor, self._trainer)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}

    def features(self, batch: dict[str, Tensor]) -> Tensor:
        """Features (B, ..., F) of a batch: its own, where a fixed backbone has computed them before."""
        if "features" in batch:
            return self._as_bags(batch["features"])
        given = batch["maps"] if "maps" in batch else batch["input"]
        features = self.backbone.from_kept(given) if "maps" in batch else self.backbone(given)
        check_features(self.backbone, features, self.head, len(given))
        return self._as_bags(features)

    def forward(self, inputs: Tensor) -> Tensor:
        """The bare network, inputs (B, ...) as scaled in training to (B, ..., C); ``ldl.inference`` takes raw ones."""
        return temper(self.head(self._as_bags(self.backbone(inputs))), self.temperature)

    def _as_bags(self, features: Tensor) -> Tensor:
        return features[:, None] if self.head.takes_bags and features.ndim == 2 else features

    def training_step(self, batch: dict[str, Any], batch_idx: int) -> dict[str, Tensor]:
        batch = with_counts(batch, train=True)
        total, rows = global_rows(batch, self.device, current_collective(), self.watch), batch["rows"]
        if isinstance(self.head, FittedHead):
            return {"loss": 0.0 * self.anchor}
        batch = mix_pairs(batch, self.mixup) if self.mixup else batch
        features, target = self.features(batch), batch["target"]
        target = trace(self.head, features, target, self.crisp) if self.crisp else target
        features, target = learned_pixels(features, target, batch)
        extra = {"value": batch.get("value")} if self.head.uses_value else {}
        if not self.kept_contract:
            check_forward(self.head, features, target, self.watch, None if "keep" in batch else batch["index"])
        losses = self.head.loss(features, target, **extra)
        if not self.kept_contract:
            check_losses(self.head, losses)
            self.kept_contract = True
        memory = losses.pop("memory", features.detach())
        if self.check_finite and self._trainer is not None:
            watch_loss(self.watch, losses["loss"].detach(), batch, self.trainer)
        self.train_means.update(losses, rows)
        self.log("loss", losses["loss"].detach(), logger=False)
        loss = loss_scale(rows, total, current_collective().world_size) * losses["loss"]
        seen = slice(None if rows else 0)
        return {"loss": loss, "memory": memory_rows(memory, seen), "target": target[seen]}

    def on_train_epoch_end(self) -> None:
        means = {f"train_{name}": mean for name, mean in self.train_means.compute().items()}
        self.log_dict(means, sync_dist=False, rank_zero_only=False, logger=False)
        write_down(self.trainer, means)
        self.train_means.reset()
        if isinstance(scheduler := self.lr_schedulers(), ReduceLROnPlateau):
            step_plateau(scheduler, self.lr_monitor, self.trainer)

    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        # Lightning is late for ReduceLROnPlateau: the epoch's checkpoint was taken. ``on_train_epoch_end`` has done it.
        if not isinstance(scheduler, ReduceLROnPlateau):
            super().lr_scheduler_step(scheduler, metric)

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        return self._evaluate(batch, self.val_metrics)

    def test_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        return self._evaluate(batch, self.test_metrics)

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        padded = with_counts(batch, train=False).get("padded")
        global_rows(batch, self.device, current_collective(), self.watch)
        distribution, value = self.head.predict(self.features(batch))
        check_output(self.head, distribution, (len(batch["index"]), *[-1] * 2 * self.gives_maps, len(self.labels)))
        if self.check_finite:
            watch_prediction(self.watch, self.head, distribution, value, batch["index"])
        distribution = temper(distribution.to(torch.promote_types(distribution.dtype, torch.float32)), self.temperature)
        output = {"index": batch["index"], "prediction": distribution}
        output.update({name: batch[name] for name in ("target", "value", "group") if name in batch})
        if self.labels.has_values:
            output["predicted_value"] = self.labels.decode(distribution, self.decoder) if value is None else value
            if "value" not in output and "target" in batch:
                output["value"] = self.labels.decode(batch["target"])
        output.update(interval_columns(self.calibration, distribution))
        return {name: column[batch["weight"] > 0] for name, column in output.items()} if padded else output

    def _evaluate(self, batch: dict[str, Tensor], metrics: StageMetrics) -> dict[str, Tensor]:
        output = self.predict_step(batch, 0)
        if self.train_values is not None:
            counts = train_counts(self.labels, self.train_values, output["value"].double().cpu().numpy())
            output["train_count"] = torch.from_numpy(counts).to(self.device)
        for means in metrics.update(output):
            self.log_dict(means, on_step=False, on_epoch=True, batch_size=len(output["index"]))
        return output

    def on_validation_epoch_end(self) -> None:
        self.log_dict(self.val_metrics.finish())

    def on_test_epoch_end(self) -> None:
        # Every process has measured all rows, so there is nothing to reduce.
        self.log_dict(self.test_metrics.finish())

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[CHECKPOINT_KEY] = describe(self)
        checkpoint[MEANS_KEY] = self.train_means.memory_state(current_collective())

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        check_same_model(checkpoint, self.head, self.backbone)
        saved, data = checkpoint[CHECKPOINT_KEY], getattr(self._trainer, "datamodule", None)
        if data is not None and hasattr(data, "prepare_as"):
            data.prepare_as(saved.get("preprocessing"))
        if self._trainer is not None:
            self.load_state_dict(checkpoint["state_dict"], self.strict_loading)
            serve_fixed(self.backbone, self.trainer)  # in ``setup`` it had other weights
            # Now, or what a run in float64 goes on from would be rounded.
            self._trainer.precision_plugin.convert_module(self)
        self.temperature = saved.get("temperature", 1.0)
        self.preprocessing = saved.get("preprocessing") or self.preprocessing
        self.calibration = Conformal.from_checkpoint(checkpoint, self.labels)
        self.train_means.load_memory_state(checkpoint.get(MEANS_KEY, {}), current_collective(), self.device)

    @classmethod
    def load_from_checkpoint(  # type: ignore[override]
        cls, checkpoint_path: str | Path, map_location: Any = "cpu", parts: dict[str, Any] | None = None, **kwargs: Any
    ) -> Task:
        """Rebuild a task from a checkpoint alone; nothing is unpickled.

        Args:
            checkpoint_path: A checkpoint that ``Trainer`` saved.
            map_location: Device of the tensors.
            parts: Specs of ``head`` and ``backbone`` in place of the checkpoint's, as of ``ldl.spec.with_changes``.
            **kwargs: Further arguments of ``Task``, such as ``optimizer``.

        Raises:
            LDLError: no such file, no checkpoint of ldl, or a head that cannot be imported.
        """
        checkpoint = read_checkpoint(checkpoint_path, map_location)
        saved = {**checkpoint[CHECKPOINT_KEY], **(parts or {})}

        def make() -> Task:
            head = from_spec(saved["head"], Head)  # type: ignore[type-abstract]
            backbone = from_spec(saved["backbone"], Backbone)  # type: ignore[type-abstract]
            task = cls(head, backbone, **{"decoder": saved["decoder"], **kwargs})
            task.build(LabelSpace.from_dict(saved["labels"]), tuple(saved["input_shape"]), load_weights=False)
            task.calibration = Conformal.from_checkpoint(checkpoint, task.labels)
            return task

        task = load_model(checkpoint_path, checkpoint, make)
        task.preprocessing, task.temperature = saved.get("preprocessing"), saved.get("temperature", 1.0)
        return task.eval()
