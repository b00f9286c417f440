"""The base of all data modules."""

from __future__ import annotations

import copy
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytorch_lightning as pl
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from ldl.batch import with_counts
from ldl.data.balance import balanced_weights
from ldl.data.instances import Instances
from ldl.data.loaded import Loaded
from ldl.data.loader import in_order
from ldl.data.order import OrderAudit
from ldl.data.serving import drawn_once, serve
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.options import buffer, check_options, option, options, options_of
from ldl.protocols import Fold, kfold, leak


@options
class LDLDataModule(pl.LightningDataModule, ABC):
    """One data set: where it lies, its label space, its protocol, and its batches.

    A subclass reads its files in :meth:`load` and serves them in :meth:`inputs`. Batches are dicts of
    ``input``, ``target`` (B, C), ``weight`` (B,; 0 marks padding), ``index`` (B,), and where they exist
    ``value`` (B,) or (B, 2) and ``group`` (B,). Where a target belongs to every pixel, ``target`` is (B, H, W, C), and
    training batches may have ``keep`` (B, H, W), bool: the pixels that are learned from.

    Args:
        batch_size: Rows of a global batch, over all processes.
        num_workers: Loader processes, per training process.
        prefetch: Batches that each loader process has ready before they are asked for.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds, for protocols that leave it open.
        fold: The fold that is tested, from 0.
        fold_seed: Seed of the folds. The seed of the run does not change them.
        val_fraction: Share of the training part, or of its groups, that is for validation.
        balance: How far rare labels are drawn more often: 1 till all are as frequent.

    Attributes:
        labels: The label space, after ``setup``, as all below.
        columns: What a batch has besides inputs, of all instances, tensors or ``ldl.data.column``: ``target`` (size,
            C), and where they exist ``value`` and ``group``. Without any, features of a backbone are not reused.
        size: Number of instances.
        groups: (size,) group of every instance, or None.
        values: (size,) true value of every instance, or (size, 2) points, or None.
        truth: (size, ...) what a model is to find by itself, such as places or groups, or None; for charts.
        names: What each instance is called in ``predictions.csv``, such as its file, or None.
        facts: Further columns of ``predictions.csv``, (size,) each.
        split: Rows of the fold.
        protocol: Name of the protocol.
        leaky: Whether groups of the test part may be in training by design; None where nobody knows the groups.
        trained_elsewhere: Whether a model is tested that is not known to be trained on these data; leaks are unknown.
        views: What the fixed layers of a backbone made of views of every picture, to be served in their place, or None.
        backbone_features: (size, F) what a frozen backbone makes of every instance, or None; see ``use_features``.
        cache_dir: Folder of what can be made again, or None for the usual one.
        in_memory: MB of features that are gathered in memory, where a head is fitted on all; more go through files.
        unserved: Attributes that :meth:`inputs` does not need: loader processes get a copy without them.
    """

    batch_size: int = option(default=64, least=1, most=2**31 - 1)
    num_workers: int = option(default=0, least=0, most=256)
    prefetch: int = option(default=2, least=1, most=1024)
    root: str | None = None
    folds: int = option(default=10, least=2, most=10_000)
    fold: int = option(default=0, least=0)
    fold_seed: int = option(default=0, least=0, most=2**32 - 1)
    val_fraction: float = option(default=0.1, least=0, below=1)
    balance: float = option(default=0.0, least=0, most=1)

    labels: LabelSpace = buffer()
    columns: dict[str, Any] = buffer()
    size: int = buffer()
    split: Fold = buffer()
    unserved: ClassVar[tuple[str, ...]] = ("trainer", "columns", "split", "backbone_features", "views")

    # An annotation would make options of them.
    protocol = "kfold"
    leaky = None  # type: bool | None
    trained_elsewhere = False
    groups = None  # type: np.ndarray | None
    values = None  # type: np.ndarray | None
    truth = None  # type: np.ndarray | None
    names = None  # type: list[str] | None
    facts = {}  # type: dict[str, np.ndarray]
    backbone_features = None  # type: Tensor | None
    features_key = None  # type: str | None
    views = None  # type: Any
    serves = "input"
    cache_dir = None  # type: str | None
    in_memory = 256.0
    _ready = False
    _cut_fold = -1

    @abstractmethod
    def load(self) -> Loaded:
        """Read the files. Raises LDLError."""

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """The inputs (B, ...) of the instances ``rows`` (B,). It runs in loader processes, without ``unserved``.

        ``train`` asks for random augmentation: ``seeds`` (B,) make it the same in any process.
        """
        raise LDLError(f"{type(self).__name__} must define inputs(rows, seeds, train), or dataset(rows, train)")

    @property
    def title(self) -> str:
        """What the data are called in names of runs and tables: the set, or the file or folder of one's own."""
        path = options_of(self).get("path")
        own = path is not None and path.default is inspect.Parameter.empty
        return Path(self.path).stem if own else type(self).__name__  # type: ignore[attr-defined]

    @cached_property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, after ``setup``; -1 where it may be any number. A subclass may set it in ``load``."""
        first = np.zeros(1, dtype=np.int64)
        return tuple(self.inputs(first, first, train=False).shape[1:])

    def dataset(self, rows: np.ndarray, train: bool) -> Dataset[Any]:
        """The instances ``rows``; ``train`` asks for random augmentation."""
        server = copy.copy(self)
        for name in self.unserved:
            server.__dict__.pop(name, None)
        return Instances(self.columns, rows, server, train)

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take what a trained task knows, before ``setup``. Data with labels of their own have nothing to take."""

    def cut(self) -> Fold:
        """The rows of ``fold``. The default is scikit-learn's shuffled KFold, by group where there are groups."""
        self.leaky = None if self.groups is None else False
        return kfold(self.size, self.folds, self.fold, self.fold_seed, self.val_fraction, self.groups)

    def prepare_fold(self) -> None:
        """Learn what preprocessing needs from ``split.train``, such as a mean. The default learns nothing."""

    def prepare_as(self, preprocessing: dict[str, Any] | None) -> None:
        """Prepare inputs, after ``setup``, as a trained task knows them, or, of None, as the fold's own training part.

        The default has learned nothing. Raises LDLError where inputs cannot be prepared so.
        """

    @property
    def data_root(self) -> Path:
        """``root``, or the environment's ``LDL_DATA``, or ``data``."""
        return Path(self.root or os.environ.get("LDL_DATA") or "data")

    def find(self, given: str) -> Path:
        """A place that an option names: as it stands, or below the data folder."""
        # ``Path.exists`` raises for names that cannot be.
        return Path(given) if os.path.exists(given) else self.data_root / given

    def setup(self, stage: str | None = None) -> None:
        """Load, once, and cut the fold and prepare it, once and after another ``fold`` was set."""
        if not self._ready:
            check_options(self)
            loaded = self.load()
            self.labels, self.columns, self.size = loaded.labels, loaded.batch_columns, loaded.size
            self.values, self.groups, self.names, self.facts = loaded.values, loaded.groups, loaded.names, loaded.facts
        if self.fold != self._cut_fold:
            self.select_fold(self.fold)
        self._ready = True

    def select_fold(self, fold: int) -> None:
        """Cut another fold of what is loaded. Raises LDLError for a fold that the protocol does not have."""
        self.fold = fold
        self.split = self.cut()
        self.prepare_fold()
        self._cut_fold = fold

    @property
    def num_folds(self) -> int:
        """Number of folds of the protocol, after ``setup``; 0 where its split is the only one."""
        return self.folds

    @property
    def leak(self) -> float | None:
        """Share of test instances whose group is also in training (the leak audit); None where nobody knows."""
        return None if self.groups is None or self.trained_elsewhere else leak(self.split, self.groups)

    @property
    def order_audit(self) -> OrderAudit | None:
        """What the order of the instances tells of groups that nobody named; None where that means nothing."""
        return None

    @property
    def train_values(self) -> np.ndarray | None:
        """True values of the training part, or None."""
        return None if self.values is None else np.asarray(self.values)[self.split.train]

    @property
    def content_key(self) -> str | None:
        """What the inputs of evaluation are made of, so that their features may be kept on disk; None keeps none."""
        return None

    @property
    def augmentation_key(self) -> str:
        """What the random transforms of training are, in words."""
        return ""

    @property
    def preprocessing(self) -> dict[str, Any] | None:
        """What an input goes through before the backbone, as plain values for checkpoints; None is unknown.

        The default says that nothing is done, and of which type inputs are: see ``ldl.inference``.
        """
        return None if self.input_dtype is None else {"dtype": self.input_dtype}

    @cached_property
    def input_dtype(self) -> str | None:
        """Type of the numbers of inputs, such as ``uint8``, after ``setup``; None where nobody knows."""
        if type(self).inputs is LDLDataModule.inputs:
            return None
        first = np.zeros(1, dtype=np.int64)
        return str(self.inputs(first, first, train=False).dtype).removeprefix("torch.")

    def use_features(self, features: Tensor | None, key: str | None = None) -> None:
        """Serve these features (size, F), under the key ``features``, in place of inputs; None serves inputs again.

        ``key`` says what they are features of, where they are computed (:mod:`ldl.backbones.reuse`).
        """
        self.backbone_features, self.features_key = features, key

    @property
    def eval_batch_size(self) -> int:
        """Rows of a global batch of validation, test and prediction."""
        return self.batch_size

    def often(self) -> np.ndarray | None:
        """How often each row of the training part is drawn in an epoch, with mean 1; None where all are alike."""
        if not self.balance:
            return None
        return balanced_weights(self.columns.get("target"), self.split.train, self.labels, self.balance)

    def train_dataloader(self) -> DataLoader[Any]:
        return serve(self, self.split.train, train=True, persistent=True)

    @property
    def train_batches(self) -> int:
        """How many batches :meth:`train_dataloader` has."""
        return -(-len(self.split.train) // self.batch_size)

    def fit_dataloader(self) -> DataLoader[Any]:
        """The training part in order and without augmentation, for heads that are fitted on features."""
        return serve(self, drawn_once(self), train=False)

    def whole_dataloader(self) -> DataLoader[Any]:
        """All instances in order and without augmentation, in one process; it knows no trainer."""
        return in_order(self.dataset(np.arange(self.size), train=False), self.size, self.batch_size)

    def image_dataloader(self, wants: Sequence[str] = ()) -> DataLoader[Any]:
        """The training part in order, one instance a batch and all of them in every process, for an ``ImageHead``.

        Raises LDLError where the data lack what batches must have besides ``input`` and ``target``.
        """
        if wants:
            raise LDLError(f"{type(self).__name__} has no {' and '.join(wants)} to learn from; use data like BSDS500")
        return in_order(self.dataset(self.split.train, train=False), len(self.split.train), 1)

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        return serve(self, self.split.val, train=False, persistent=True) if len(self.split.val) else []

    def test_dataloader(self) -> DataLoader[Any]:
        return serve(self, self.split.test, train=False)

    def predict_dataloader(self) -> DataLoader[Any]:
        return self.test_dataloader()

    def on_before_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> dict[str, Any]:
        return with_counts(batch, train=self.trainer is not None and bool(self.trainer.training))
