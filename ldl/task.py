"""The LightningModule: backbone, head, metrics, optimiser."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.cli import LRSchedulerCallable, OptimizerCallable
from torch import Tensor, nn
from typing_extensions import override

from ldl.backbones.base import Backbone, Identity, WholeImages, show_inputs
from ldl.backbones.frozen import serve_frozen
from ldl.batch import (
    convert_inputs_only,
    for_members,
    global_rows,
    learned_pixels,
    loss_scale,
    normalised_alone,
)
from ldl.batch import mixup as mix_pairs
from ldl.callbacks import Calibrate, CheckFinite, Compile, Compiled, Resume, Units, head_callbacks, log_epoch
from ldl.checkpoint import CHECKPOINT_KEY, check_same_inputs, check_same_model, describe, load_model, read_checkpoint
from ldl.collective import current_collective
from ldl.data.base import LDLDataModule
from ldl.errors import LDLError
from ldl.head import FittedHead, Head, ImageHead, check_memory, compute_loss, memory_rows
from ldl.labels import Decoder, LabelSpace
from ldl.methods.conformal import Conformal, interval_columns
from ldl.methods.rows import Rows
from ldl.methods.temperature import temper
from ldl.methods.torch_utils import library_defaults
from ldl.metrics.ordinal import train_counts
from ldl.metrics.single_votes import score_votes
from ldl.metrics.stage import LossMeans, StageMetrics
from ldl.raters.learning import (
    check_raters,
    check_same_raters,
    learn_votes,
    make_raters,
    observe_votes,
    predict_votes,
    rater_options,
)
from ldl.raters.model import RaterModel, Raters, Shrinkage
from ldl.raters.table import RaterTable
from ldl.schedule import LR_MONITOR, Optimised, step_plateau
from ldl.spec import from_spec
from ldl.validation.contract import check_built, check_features, check_forward, check_losses, check_made, check_output
from ldl.validation.finite import DeferredChecks, note_loss, note_prediction
from ldl.validation.setup import (
    PlainBatches,
    begin_from,
    check_features_of,
    check_images,
    check_missing,
    check_settings,
    task_arguments,
)

MEANS_KEY = "train_means"


class Task(Optimised):
    """Trains a head on a backbone to predict label distributions.

    ``Trainer(plugins=[AtomicCheckpointIO()])`` writes each checkpoint completely or not at all, as ``train.py`` does.

    Args:
        head: The head, by class name.
        backbone: Network from inputs to features; None is ``Identity``, or ``WholeImages`` for heads that take images.
        optimizer: Any torch optimiser. A backbone with a learning rate of its own is a second parameter group.
        lr_scheduler: Any torch scheduler, or None.
        lr_interval: Whether the scheduler steps once an ``epoch`` or at every ``step``.
        lr_monitor: Metric that torch's ReduceLROnPlateau monitors; Lightning's has its own ``monitor``.
        mixup: Mix pairs of training instances, not of bags, with weights from Beta(mixup, mixup); 0 for none.
        decoder: Point prediction from a distribution, for metrics: ``expectation``, ``argmax`` or ``median``.
        check_finite: Stop before the next step if a loss is not finite or a prediction is not a distribution.
        calibrate: Divide the logarithms of predictions by a temperature that is fitted on the validation set.
        conformal: Units that calibrate intervals and sets: ``groups``, such as subjects, ``rows``, or ``none``.
        compile: Compile the training step of the ``head`` or of ``all`` with torch, or of ``none``.
        raters: Learn a model of each rater from single votes: ``bias`` adds a vector per rater to the logarithms of the
            labels, and for ordinal labels also shifts and scales the thresholds; ``confusion`` multiplies by a matrix
            per rater. Predictions are then the mean over the raters. ``none`` learns distributions.
        rater_shrinkage: Strength with which each rater is shrunk to the mean rater. Of several numbers, or the usual
            ones for None, validation chooses one.
        start: A checkpoint of ldl with the same backbone, head and labels whose weights to start from. The data's
            nominal labels are put into its order.

    Examples:
        >>> import pytorch_lightning as pl
        >>> import torch
        >>> from ldl import Task
        >>> from ldl.backbones import Identity
        >>> from ldl.data import RotatedDigits
        >>> from ldl.heads import Softmax
        >>> task = Task(Softmax(), Identity(flatten=True), optimizer=lambda groups: torch.optim.AdamW(groups, lr=1e-3))
        >>> trainer = pl.Trainer(max_epochs=1, logger=False, enable_progress_bar=False, enable_model_summary=False)
        >>> trainer.fit(task, datamodule=RotatedDigits(turns=1))
        >>> task(torch.zeros(2, 1, 12, 12)).shape  # 49 angles
        torch.Size([2, 49])
    """

    option_roles: ClassVar[dict[str, str]] = {"optimizer": "start", "lr_scheduler": "start", "start": "start"}

    def __init__(
        self,
        head: Head,
        backbone: Backbone | None = None,
        optimizer: OptimizerCallable = torch.optim.AdamW,
        lr_scheduler: LRSchedulerCallable | None = None,
        lr_interval: Literal["epoch", "step"] = "epoch",
        lr_monitor: str = LR_MONITOR,
        mixup: float = 0.0,
        decoder: Decoder = "expectation",
        check_finite: bool = True,
        calibrate: bool = False,
        conformal: Units = "groups",
        compile: Compiled = "none",
        start: str | None = None,
        raters: RaterModel = "none",
        rater_shrinkage: Shrinkage = None,
    ) -> None:
        super().__init__()
        backbone = backbone or (WholeImages() if isinstance(head, ImageHead) else Identity())
        check_made(head, backbone)
        check_settings(head, mixup, decoder)
        check_raters(head, raters, rater_shrinkage, mixup)
        self.head, self.backbone, self.compiled = head, backbone, Compile(compile, head, backbone)
        self.optimizer, self.mixup, self.start = optimizer, mixup, start
        self.lr_scheduler, self.lr_interval, self.lr_monitor = lr_scheduler, lr_interval, lr_monitor
        self.decoder, self.check_finite = decoder, check_finite
        self.calibrate, self.temperature = calibrate, 1.0
        self.conformal, self.calibration = conformal, cast("Conformal | None", None)
        self.model_votes: float | None = None
        self.rater_model, self.rater_shrinkage = raters, rater_shrinkage
        self.raters: Raters | None = None
        self.plain = PlainBatches()
        self.watch, self.kept_contract, self.train_means = DeferredChecks(), False, LossMeans()
        self.input_shape: tuple[int, ...] | None = None
        self.preprocessing: dict[str, Any] | None = None
        self.train_values: np.ndarray | None = None
        if isinstance(head, FittedHead):
            # DistributedDataParallel and optimisers need at least one parameter.
            self.anchor = nn.Parameter(torch.zeros(()))

    @property
    def labels(self) -> LabelSpace:
        """Label space of the head."""
        return self.head.labels

    @property
    def gives_maps(self) -> bool:
        """Whether predictions are maps (B, H, W, C) with a distribution at every pixel."""
        return self.backbone.gives_maps

    @library_defaults(device=None)  # a task on the device meta stays there
    def build(
        self,
        labels: LabelSpace,
        input_shape: tuple[int, ...],
        load_weights: bool = True,
        raters: RaterTable | LDLDataModule | None = None,
    ) -> None:
        """Create backbone, head and metrics; later calls do nothing.

        Args:
            labels: The label space.
            input_shape: Shape of one input.
            load_weights: Whether to load pretrained weights.
            raters: The raters of the training votes, or a data module with them, if the task has a model of raters.

        Raises:
            LDLError: Backbone or head does not accept these inputs, the task was built for other labels, or it has a
                model of raters and there are none.
        """
        if self.input_shape is not None:
            check_same_inputs((self.labels, self.input_shape), (labels, tuple(input_shape)))
            return
        check_images(self.head, self.backbone, isinstance(self.backbone, WholeImages))
        width = self.backbone.build(tuple(input_shape), load_weights)
        check_features_of(self.head, self.backbone)
        check_memory(self.head, width, labels)
        self.head.build(width, labels)
        check_built(self.head, width, labels)
        if self.start and load_weights:
            begin_from(self.start, self.head, self.backbone, labels)
        if self.rater_model != "none":
            self.raters = make_raters(self, labels, raters)
        self.input_shape = tuple(input_shape)
        self.val_metrics = StageMetrics(labels, "val_", self.gives_maps, details=False)
        self.test_metrics = StageMetrics(labels, "test_", self.gives_maps)

    def follow_start(self, data: Any) -> None:
        """Let a data module put its labels into the order of the checkpoint ``start``, before ``build``."""
        if self.start and self.input_shape is None and hasattr(data, "follow_labels"):
            described = read_checkpoint(self.start)[CHECKPOINT_KEY]
            data.follow_labels(LabelSpace.from_dict(described["labels"]))

    def setup(self, stage: str) -> None:
        """Build the task for the trainer's data module, unless ``build`` was called before."""
        convert_inputs_only(self.trainer.precision_plugin)
        data = getattr(self.trainer, "datamodule", None)
        if data is not None and hasattr(data, "labels"):
            self.follow_start(data)
            self.build(data.labels, data.input_shape, raters=data)
            if self.raters is not None:
                data.serve_votes(self.raters.names, train=True)
            elif getattr(data, "annotations", None) is not None:
                data.serve_votes()
            check_missing(self.head, getattr(data, "has_missing", False))
            data.prepare_as(None if stage == "fit" else self.preprocessing)
            self.preprocessing = data.preprocessing if stage == "fit" else self.preprocessing or data.preprocessing
            if stage != "predict":
                self.train_values = data.train_values if self.labels.kind == "ordinal" and not self.gives_maps else None
            if stage == "fit" and self.backbone.learns_inputs:
                show_inputs(self.backbone, data)
            serve_frozen(self.backbone, self.trainer)
        elif self.input_shape is None:
            raise LDLError("Task has no labels; pass Trainer.fit a data module of ldl, or call task.build first")

    def configure_callbacks(self) -> list[pl.Callback]:
        """Return the callbacks that drive the head, and the callbacks of every run."""
        return [*head_callbacks(self.head, self.compiled, self._trainer), Resume(), CheckFinite(), Calibrate()]

    def features(self, batch: dict[str, Tensor]) -> Tensor:
        """Return features (B, ..., F) of a batch, which has them already if a frozen backbone has computed them."""
        if "features" in batch:
            return self._as_bags(batch["features"])
        inputs = batch["maps"] if "maps" in batch else batch["input"]
        features = self.backbone.from_frozen_maps(inputs) if "maps" in batch else self.backbone(inputs)
        check_features(self.backbone, features, self.head, len(inputs))
        return self._as_bags(features)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return distributions (B, ..., C) of inputs (B, ...) scaled as in training; ``Predictor`` takes raw inputs."""
        distribution = self.head(self._as_bags(self.backbone(inputs)))
        if self.backbone.gives_members:
            distribution = distribution.mean(1)
        distribution = distribution if self.raters is None else self.raters.population(distribution)
        return temper(distribution, self.temperature)

    def _score_votes(self, of_head: Tensor, prediction: Tensor, batch: dict[str, Tensor]) -> Tensor:
        """Return the scores (B, S) of the votes of a batch by ``score_votes``.

        Args:
            of_head: (B, C) distributions of the head, for a model of raters.
            prediction: (B, C) predictions, which hold for all raters if there is no such model.
            batch: The batch, with ``rater`` and ``vote`` (B, V).
        """
        rater, vote = batch["rater"], batch["vote"]
        if self.raters is None:
            return score_votes(prediction.unsqueeze(1), vote, self.labels)
        rated = self.raters.distribution_of(of_head.repeat_interleave(vote.shape[1], 0), rater.flatten())
        return score_votes(temper(rated, self.temperature).unflatten(0, rater.shape), vote, self.labels)

    def _as_bags(self, features: Tensor) -> Tensor:
        return features[:, None] if self.head.takes_bags and features.ndim == 2 else features

    def training_step(self, batch: dict[str, Any], batch_idx: int) -> dict[str, Tensor]:
        """Return ``loss``, a scalar, and ``memory`` (n, ...) and ``target`` (n, ..., C) for alternating heads."""
        batch = self.plain.complete(batch, batch_idx, len(self.labels), train=True, wants_target=True)
        total, rows = global_rows(batch, self.device, current_collective(), self.watch), batch["rows"]
        if isinstance(self.head, FittedHead):
            return {"loss": 0.0 * self.anchor}
        batch = mix_pairs(batch, self.mixup) if self.mixup else batch
        weight = batch["weight"] if batch["weighted"] else None
        with normalised_alone(self, len(batch["index"])):
            features, target = self.features(batch), batch["target"]
            if isinstance(data := getattr(self._trainer, "datamodule", None), LDLDataModule):
                target = data.learned_target(self.head, features, target)
            features, target = learned_pixels(features, target, batch)
            value = batch.get("value")
            if self.backbone.gives_members:
                target = for_members(target, features)
                value = None if value is None else for_members(value, features)
            if not self.kept_contract:
                check_forward(self.head, features, target, self.watch, None if "keep" in batch else batch["index"])
            if self.raters is None:
                losses = compute_loss(self.head, Rows(features, target, value, weight))
            else:
                losses, target = learn_votes(self.raters, self.head, features, batch, weight)
                target = for_members(target, features) if self.backbone.gives_members else target
            if not self.kept_contract:
                check_losses(self.head, losses)
                self.kept_contract = True
        memory = losses.pop("memory", features.detach())
        if self.check_finite and self._trainer is not None:
            note_loss(self.watch, losses["loss"].detach(), batch, self.trainer)
        self.train_means.update(losses, rows)
        if self._trainer is not None:
            # Lightning's ``log`` takes as long as the step of a small network.
            self.trainer.callback_metrics["loss"] = losses["loss"].detach()
        loss = loss_scale(rows, total, current_collective().world_size) * losses["loss"]
        seen = slice(None if rows else 0)
        target = target if weight is None else target * weight.reshape(-1, *[1] * (target.ndim - 1))
        return {"loss": loss, "memory": memory_rows(memory, seen), "target": target[seen]}

    @override
    def on_train_epoch_end(self) -> None:
        means = {f"train_{name}": mean for name, mean in self.train_means.compute().items()}
        self.log_dict(means, sync_dist=False, rank_zero_only=False, logger=False)
        log_epoch(self.trainer, means)
        self.train_means.reset()
        step_plateau(self.trainer)

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        """Add a batch to the validation metrics, and return the output of :meth:`predict_step` and its weights."""
        return self._evaluate(batch, self.val_metrics, batch_idx)

    def test_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        """Add a batch to the test metrics, and return the output of :meth:`predict_step` and its weights."""
        return self._evaluate(batch, self.test_metrics, batch_idx)

    def predict_step(self, batch: dict[str, Tensor], batch_idx: int) -> dict[str, Tensor]:
        """Return ``prediction`` (B, ..., C), ``index`` (B,), ``predicted_value`` if labels have values, and more."""
        batch = self.plain.complete(batch, batch_idx, len(self.labels), train=False, wants_target=False)
        padded = batch.get("padded")
        global_rows(batch, self.device, current_collective(), self.watch)
        distribution, value = self.head.predict(self.features(batch))
        if self.backbone.gives_members:
            distribution, value = distribution.mean(1), None if value is None else value.mean(1)
        if self.raters is not None:
            value = None  # a head estimates it for the distribution before the raters
        check_output(self.head, distribution, (len(batch["index"]), *[-1] * 2 * self.gives_maps, len(self.labels)))
        if self.check_finite:
            note_prediction(self.watch, self.head, distribution, value, batch["index"])
        of_head = distribution
        if self.raters is not None:
            if self._chooses_raters:
                observe_votes(self.raters, distribution, batch, begins=batch_idx == 0)
            distribution = predict_votes(self.raters, distribution, batch)
        distribution = temper(distribution.to(torch.promote_types(distribution.dtype, torch.float32)), self.temperature)
        output = {"index": batch["index"], "prediction": distribution}
        if "vote" in batch and "rater" in batch and "as_rater" not in batch:
            output["rater_scores"] = self._score_votes(of_head, distribution, batch)
        output.update(
            {name: batch[name] for name in ("target", "value", "group", "votes", "as_rater") if name in batch}
        )
        if self.labels.has_values:
            output["predicted_value"] = self.labels.decode(distribution, self.decoder) if value is None else value
            if "value" not in output and "target" in batch:
                output["value"] = self.labels.decode(batch["target"])
        if self.calibration is not None and "as_rater" not in batch:
            output.update(interval_columns(self.calibration, distribution))
        return {name: column[batch["weight"] > 0] for name, column in output.items()} if padded else output

    def _evaluate(self, batch: dict[str, Tensor], metrics: StageMetrics, batch_idx: int) -> dict[str, Tensor]:
        batch = self.plain.complete(batch, batch_idx, len(self.labels), train=False, wants_target=True)
        output = self.predict_step(batch, batch_idx)
        output["weight"] = batch["weight"][batch["weight"] > 0] if batch["padded"] else batch["weight"]
        if self.train_values is not None:
            counts = train_counts(self.labels, self.train_values, output["value"].double().cpu().numpy())
            output["train_count"] = torch.from_numpy(counts).to(self.device)
        metrics.update(output)
        return output

    @property
    def _chooses_raters(self) -> bool:
        trainer = self._trainer
        return trainer is not None and trainer.state.fn == "fit" and trainer.state.stage == "validate"

    @override
    def on_fit_end(self) -> None:
        if self.raters is not None:
            self.raters.warn_unchosen()

    @override
    def on_validation_epoch_end(self) -> None:
        self.log_dict(self.val_metrics.finish())
        if self.raters is not None and self._chooses_raters:
            self.raters.choose(current_collective())

    @override
    def on_test_epoch_end(self) -> None:
        # Every process has evaluated all rows, so there is nothing to reduce.
        self.log_dict(self.test_metrics.finish())

    @override
    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint[CHECKPOINT_KEY] = describe(self)
        checkpoint[MEANS_KEY] = self.train_means.memory_state(current_collective())

    @override
    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        check_same_model(checkpoint, self.head, self.backbone)
        check_same_raters(checkpoint[CHECKPOINT_KEY].get("raters"), self.raters)
        saved, data = checkpoint[CHECKPOINT_KEY], getattr(self._trainer, "datamodule", None)
        if data is not None and hasattr(data, "prepare_as"):
            data.prepare_as(saved.get("preprocessing"))
        if self._trainer is not None:
            self.load_state_dict(checkpoint["state_dict"], self.strict_loading)
            serve_frozen(self.backbone, self.trainer)  # it had other weights in ``setup``
            # Convert now, or the weights of a resumed run in float64 would be rounded.
            self._trainer.precision_plugin.convert_module(self)
        self.temperature, self.model_votes = saved.get("temperature", 1.0), saved.get("model_votes")
        self.preprocessing = saved.get("preprocessing") or self.preprocessing
        self.calibration = Conformal.from_checkpoint(checkpoint, self.labels)
        if self.raters is not None:
            self.raters.restore(saved["raters"]["chosen"])
        self.train_means.load_memory_state(checkpoint.get(MEANS_KEY, {}), current_collective(), self.device)

    @classmethod
    @library_defaults()
    def load_from_checkpoint(  # type: ignore[override]
        cls, checkpoint_path: str | Path, map_location: Any = "cpu", parts: dict[str, Any] | None = None, **kwargs: Any
    ) -> Task:
        """Rebuild a task from a checkpoint alone, without unpickling.

        Args:
            checkpoint_path: A checkpoint that ``Trainer`` saved.
            map_location: Device of the tensors.
            parts: Specs that replace those of ``head`` and ``backbone``, as from ``ldl.spec.with_changes``.
            **kwargs: Further arguments of ``Task``, such as ``optimizer``; Lightning's ``strict`` may be True.

        Raises:
            LDLError: The file is missing or no checkpoint of ldl, a head cannot be imported, or an argument is unknown.
        """
        kwargs = task_arguments(cls, kwargs)
        checkpoint = read_checkpoint(checkpoint_path, map_location)
        saved = {**checkpoint[CHECKPOINT_KEY], **(parts or {})}

        def make() -> Task:
            head = from_spec(saved["head"], Head)  # type: ignore[type-abstract]
            backbone = from_spec(saved["backbone"], Backbone)  # type: ignore[type-abstract]
            raters = saved.get("raters")
            options = {"decoder": saved["decoder"], **rater_options(raters), **kwargs}
            task = cls(head, backbone, **options)
            table = None if raters is None else RaterTable.from_state(raters)
            task.build(LabelSpace.from_dict(saved["labels"]), tuple(saved["input_shape"]), False, table)
            if task.raters is not None:
                task.raters.restore(saved["raters"]["chosen"])
            task.calibration = Conformal.from_checkpoint(checkpoint, task.labels)
            return task

        task = load_model(checkpoint_path, checkpoint, make)
        task.preprocessing, task.temperature = saved.get("preprocessing"), saved.get("temperature", 1.0)
        task.model_votes = saved.get("model_votes")
        return task.eval()
