"""The base of all data modules, and the record that their ``load`` returns."""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset
from typing_extensions import override

from ldl.annotations.votes import SingleVotes
from ldl.batch import EVALUATED_ROWS, usual_batch_size, with_counts
from ldl.collective import process_rank
from ldl.data.loader import Instances, drawn_once, in_order, serve
from ldl.data.names import matching
from ldl.data.pictures import units
from ldl.data.row_order import OrderAudit
from ldl.data.sampler import balanced_weights
from ldl.errors import LDLError
from ldl.head import Head
from ldl.labels import LabelSpace
from ldl.moved import old_names
from ldl.options import buffer, check_options, option, options, options_of
from ldl.protocols import Fold, keep_together, kfold, leak
from ldl.raters.table import RaterTable
from ldl.validation.files import data_folder, find_path


@dataclass(frozen=True)
class Loaded:
    """The record that ``load`` of a data module returns. All columns have one entry per instance.

    Attributes:
        labels: The label space.
        columns: Columns of a batch besides inputs, tensors or other ``ldl.data.storage.BatchColumn``: ``target``
            (size, C) and any others. Unless given, ``value`` (float32) and ``group`` (numbered from 0) are made of
            ``values`` and ``groups``.
        values: (size,) true values, float64, or (size, 2) points of a plane; None if there are none.
        groups: (size,) group of every instance, such as the subject; None if unknown.
        names: Name of each instance in ``predictions.csv``, such as its file.
        facts: Further columns of ``predictions.csv``, such as the place of a face in its image.
        copies: (size,) equal for instances whose files have the same bytes (``ldl.data.pictures.same_bytes``); None if
            no files were compared.

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace
        >>> from ldl.data import Loaded
        >>> Loaded(LabelSpace.nominal(["no", "yes"]), {"target": torch.eye(2)}, names=["a", "b"]).names
        ['a', 'b']
    """

    labels: LabelSpace
    columns: dict[str, Any]
    values: np.ndarray | None = None
    groups: np.ndarray | None = None
    names: list[str] | None = None
    facts: dict[str, np.ndarray] = field(default_factory=dict)
    copies: np.ndarray | None = None

    def arranged(self, labels: LabelSpace, places: list[int]) -> Loaded:
        """Return the record with other ``labels``, whose columns stand at ``places`` (C,) of the present ones."""
        target = self.columns["target"]
        if places != sorted(places):
            target = target[..., places] if isinstance(target, Tensor) else target.reordered(places)
        return replace(self, labels=labels, columns={**self.columns, "target": target})

    def following(self, labels: LabelSpace | None) -> Loaded:
        """Return the record with the nominal ``labels`` of a trained task, if the names are the same; else itself."""
        if labels is None or labels == self.labels or self.labels.kind != "nominal" or "target" not in self.columns:
            return self
        places = matching(self.labels.names, labels)
        return self if places is None else self.arranged(labels, places)

    @property
    def size(self) -> int:
        """Number of instances."""
        return len(next(iter(self._parts.values()), ()))

    @property
    def batch_columns(self) -> dict[str, Any]:
        """The columns, with ``value`` and ``group``. Raises LDLError if their lengths differ."""
        lengths = {name: len(entries) for name, entries in self._parts.items()}
        if len(set(lengths.values())) > 1:
            text = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise LDLError(f"load() gives columns of different lengths: {text}; each needs one entry an instance")
        made = {}
        if self.values is not None:
            made["value"] = torch.tensor(self.values, dtype=torch.float32)
        if self.groups is not None:
            made["group"] = torch.from_numpy(np.unique(self.groups, return_inverse=True)[1])
        return {**self.columns, **{name: column for name, column in made.items() if name not in self.columns}}

    @property
    def _parts(self) -> dict[str, Any]:
        more = {"values": self.values, "groups": self.groups, "names": self.names, "copies": self.copies}
        return {**self.columns, **self.facts, **{name: column for name, column in more.items() if column is not None}}


@options
class LDLDataModule(pl.LightningDataModule, ABC):
    """A data set: its files, its label space, its evaluation protocol and its batches.

    A subclass reads its files in :meth:`load` and serves inputs in :meth:`inputs`. Batches are dicts of ``input``,
    ``target`` (B, C), ``weight`` (B,; by default 1, and 0 for padding), ``index`` (B,), and optionally ``value`` (B,)
    or (B, 2) and ``group`` (B,). If every pixel has a target, ``target`` is (B, H, W, C), and training batches may have
    ``keep`` (B, H, W), bool: the pixels to learn from.

    Args:
        batch_size: Rows of a global batch, over all processes. None takes a power of two near a twelfth of the training
            rows, 16 to 64 (:func:`ldl.batch.usual_batch_size`), and 256 for evaluation.
        num_workers: Loader processes per training process.
        prefetch: Batches that each loader process prepares in advance.
        root: Folder of the data; None takes the environment's ``LDL_DATA``, or ``data``.
        folds: Number of folds, for protocols that leave it open.
        fold: The test fold, from 0.
        fold_seed: Seed of the folds. The seed of the run does not change them.
        val_fraction: Share of the training rows, or of their groups, for validation. None takes a tenth to calibrate
            intervals and sets, if that is at least 50 rows, and 9 groups where validation takes whole groups, and else
            none (:func:`ldl.protocols.calibration_units`).
        balance: Strength of balanced sampling: 0 draws all rows equally, 1 makes all labels equally frequent.

    Attributes:
        labels: The label space, after ``setup``, as all attributes below.
        columns: Columns of a batch besides inputs, for all instances, tensors or ``ldl.data.storage.BatchColumn``:
            ``target`` (size, C), and optionally ``value``, ``group`` and row weights ``weight`` (size,). Without
            columns, backbone features are not reused.
        size: Number of instances.
        groups: (size,) group of every instance, or None.
        group_names: Name of each group, by its number in the column ``group``; None if groups are unknown.
        values: (size,) true value of every instance, or (size, 2) points, or None.
        truth: (size, ...) quantities for a model to discover, such as places or groups, or None; for charts.
        copies: (size,) equal for instances whose files have the same bytes, or None if no files were compared.
        names: Name of each instance in ``predictions.csv``, such as its file, or None.
        facts: Further columns of ``predictions.csv``, (size,) each.
        split: Rows of the fold.
        protocol: Name of the protocol.
        leaky: Whether the protocol lets test groups be in training; None if groups are unknown.
        trained_labels: Labels of a trained task, set by ``follow``, or None.
        chosen: Names that ``load`` found in the file for options that may be None; ``config.yaml`` records them.
        taken: Description of the names found in the file; empty if nothing was chosen.
        trained_elsewhere: Whether the model under test may have been trained on these data, so leakage is unknown.
        views: Cached outputs of a backbone's frozen layers, served instead of inputs, or None.
        backbone_features: (size, F) features from a frozen backbone, or None; see ``use_features``.
        cache_dir: Folder of the cache, or None for the usual one.
        in_memory: MB of features that are gathered in memory to fit a head; more are gathered in files.
        unserved: Attributes that :meth:`inputs` does not need; loader processes get a copy without them.

    Examples:
        >>> import torch
        >>> from ldl import LabelSpace, LDLDataModule
        >>> from ldl.data import Loaded
        >>> class Coins(LDLDataModule):
        ...     def load(self):
        ...         shares = torch.rand(20, 1)
        ...         target = torch.hstack([shares, 1 - shares])
        ...         return Loaded(LabelSpace.nominal(["heads", "tails"]), {"target": target})
        ...     def inputs(self, rows, seeds, train):
        ...         return torch.zeros(len(rows), 3)
        >>> data = Coins(folds=5)
        >>> data.setup()
        >>> len(data.split.train), len(data.split.val), len(data.split.test)
        (14, 2, 4)
    """

    batch_size: int | None = option(default=64, least=1, most=2**31 - 1, null="16 to 64, by the training rows")
    num_workers: int = option(default=0, least=0, most=256, role="speed")
    prefetch: int = option(default=2, least=1, most=1024, role="speed")
    root: str | None = option(default=None, role="path")
    folds: int = option(default=10, least=2, most=10_000, role="fold")
    fold: int = option(default=0, least=0, role="fold")
    fold_seed: int = option(default=0, least=0, most=2**32 - 1, role="fold")
    val_fraction: float | None = option(
        default=0.1, least=0, below=1, null="a tenth where rows suffice to calibrate", role="validation"
    )
    balance: float = option(default=0.0, least=0, most=1, role="training")

    labels: LabelSpace = buffer()
    columns: dict[str, Any] = buffer()
    size: int = buffer()
    split: Fold = buffer()
    unserved: ClassVar[tuple[str, ...]] = ("trainer", "columns", "split", "backbone_features", "views")

    # Without annotations, which would make them options.
    protocol = "kfold"
    trained_labels = None  # type: LabelSpace | None
    chosen = {}  # type: dict[str, str | None]
    taken = ""
    leaky = None  # type: bool | None
    trained_elsewhere = False
    groups = None  # type: np.ndarray | None
    group_names = None  # type: list[str] | None
    copies = None  # type: np.ndarray | None
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
        """Return the inputs (B, ...) of some instances. Loader processes call it on a copy without ``unserved``.

        Args:
            rows: (B,) numbers of the instances.
            seeds: (B,) seeds of random augmentation, equal in any process.
            train: Apply random augmentation.
        """
        raise LDLError(f"{type(self).__name__} must define inputs(rows, seeds, train), or dataset(rows, train)")

    @property
    def title(self) -> str:
        """Name of the data in runs and tables: the class, or the stem of the user's own file or folder."""
        path = options_of(self).get("path")
        is_user_path = path is not None and path.default is inspect.Parameter.empty
        return Path(self.path).stem if is_user_path else type(self).__name__  # type: ignore[attr-defined]

    @cached_property
    def input_shape(self) -> tuple[int, ...]:
        """Shape of one input, after ``setup``; -1 for a variable size. A subclass may set it in ``load``."""
        first = np.zeros(1, dtype=np.int64)
        return tuple(self.inputs(first, first, train=False).shape[1:])

    def dataset(self, rows: np.ndarray, train: bool) -> Dataset[Any]:
        """Return the instances ``rows`` as a data set, with random augmentation if ``train``."""
        server = copy.copy(self)
        for name in self.unserved:
            server.__dict__.pop(name, None)
        return Instances(self.columns, rows, server, train)

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take over the labels of a trained task, before ``setup``, with the order of their names."""
        self.trained_labels = labels

    def follow_labels(self, labels: LabelSpace) -> None:
        """Take over the labels of a trained task with the order of their names, also after ``setup``."""
        self.trained_labels = labels
        if self._ready and self.labels != labels and self.labels.kind == labels.kind == "nominal":
            self._ready, self._cut_fold = False, -1
            self.setup()

    def report_columns(self, taken: str) -> None:
        """Keep and print the description of the columns and other parts of a file that are used."""
        self.taken = taken
        if taken and process_rank() == 0:
            path = getattr(self, "path", None)
            print(f"taken from {path and self.find(path)}: {taken}", flush=True)

    tell_taken = report_columns  # its name in 0.2.0, which plugins call

    def cut(self) -> Fold:
        """Return the rows of ``fold``: scikit-learn's shuffled KFold, by group if there are groups.

        Copies of a file stay in one part.
        """
        self.leaky = None if self.groups is None else False
        fold = kfold(self.size, self.folds, self.fold, self.fold_seed, self.val_fraction, self.groups)
        return fold if self.copies is None else keep_together(fold, units(self.copies, self.groups))

    @property
    def single_votes(self) -> SingleVotes | None:
        """The votes with their raters, with the numbers of instances and labels of this module; None if unknown."""
        return None

    @property
    def rater_table(self) -> RaterTable | None:
        """The raters, after ``setup``, with their votes in the training set; None if they are unknown."""
        return None

    def serve_votes(self, names: Sequence[str] = (), train: bool = False) -> None:
        """Serve any single votes, if ``train`` in training too: ``vote`` (B, V), and ``rater``, by ``names`` or -1."""

    def prepare_fold(self) -> None:
        """Fit preprocessing to ``split.train``, such as a mean. The default does nothing."""

    def prepare_as(self, preprocessing: dict[str, Any] | None) -> None:
        """Prepare inputs, after ``setup``, as a trained task does, or by the fold's own training rows if None.

        The default does nothing. Raises LDLError if inputs cannot be prepared in this way.
        """

    @property
    def data_root(self) -> Path:
        """``root``, or the environment's ``LDL_DATA``, or ``data``."""
        return data_folder(self.root)

    def find(self, path: str) -> Path:
        """Return the path that an option names: as given, below the data folder, or an example that comes with ldl."""
        return find_path(path, self.root)

    def setup(self, stage: str | None = None) -> None:
        """Load the data once, and cut and prepare the fold, again if ``fold`` was changed."""
        if not self._ready:
            check_options(self)
            loaded = self.load().following(self.trained_labels)
            self.labels, self.columns, self.size = loaded.labels, loaded.batch_columns, loaded.size
            self.values, self.groups, self.names, self.facts = loaded.values, loaded.groups, loaded.names, loaded.facts
            self.copies = loaded.copies
            if self.group_names is None and self.groups is not None and "group" not in loaded.columns:
                self.group_names = list(map(str, np.unique(self.groups)))
        if self.fold != self._cut_fold:
            self.select_fold(self.fold)
        self._ready = True

    def select_fold(self, fold: int) -> None:
        """Cut another fold of the loaded data. Raises LDLError if the protocol has no such fold."""
        self.fold = fold
        self.split = self.cut()
        self.prepare_fold()
        self._cut_fold = fold

    @property
    def num_folds(self) -> int:
        """Number of folds of the protocol, after ``setup``; 0 for a single fixed split."""
        return self.folds

    @property
    def leak(self) -> float | None:
        """Share of test instances whose group is also in training (the leak audit); None if unknown."""
        return None if self.groups is None or self.trained_elsewhere else leak(self.split, self.groups)

    @property
    def copied(self) -> float | None:
        """Share of test instances that training has a copy of; None if no files were compared."""
        return None if self.copies is None or self.trained_elsewhere else leak(self.split, self.copies)

    @property
    def order_audit(self) -> OrderAudit | None:
        """Row-order check for groups that the data do not name; None if it does not apply."""
        return None

    @property
    def train_values(self) -> np.ndarray | None:
        """True values of the training rows, or None."""
        return None if self.values is None else np.asarray(self.values)[self.split.train]

    @property
    def content_key(self) -> str | None:
        """Key of the inputs of evaluation, under which their features are cached on disk; None disables the cache."""
        return None

    @property
    def augmentation_key(self) -> str:
        """Description of the random transforms of training."""
        return ""

    @property
    def preprocessing(self) -> dict[str, Any] | None:
        """Preprocessing of an input before the backbone, as plain values for checkpoints; None if unknown.

        The default records no preprocessing and the dtype of inputs; see ``ldl.inference``.
        """
        return None if self.input_dtype is None else {"dtype": self.input_dtype}

    @cached_property
    def input_dtype(self) -> str | None:
        """Type of the numbers of inputs, such as ``uint8``, after ``setup``; None if unknown."""
        if type(self).inputs is LDLDataModule.inputs:
            return None
        first = np.zeros(1, dtype=np.int64)
        return str(self.inputs(first, first, train=False).dtype).removeprefix("torch.")

    def use_features(self, features: Tensor | None, key: str | None = None) -> None:
        """Serve backbone features instead of inputs.

        Args:
            features: (size, F), served as ``features``; None serves inputs again.
            key: Identifies the features (:mod:`ldl.backbones.frozen`).
        """
        self.backbone_features, self.features_key = features, key

    def report_class(self, maps: bool) -> type[pl.Callback] | None:
        """Return the class of the report that runs on these data get; None for the usual one.

        It is called with the run directory, whether to draw charts, and whether to mark text that looks like a formula,
        as :class:`ldl.reports.rows.Report` is.

        Args:
            maps: Whether the task predicts every pixel.
        """
        return None

    def learned_target(self, head: Head, features: Tensor, target: Tensor) -> Tensor:
        """Return the target from which a head that learns by gradient learns a batch; the default changes nothing.

        Args:
            head: The head, in its current state of training.
            features: (B, ..., F), of maps (B, H, W, F), or (B, S, H, W, F) of several outputs.
            target: (B, C), of maps (B, H, W, C).

        Returns:
            Distributions of the shape of ``target``.
        """
        return target

    @property
    def observed_target(self) -> Any:
        """The column ``target`` of the data (size, C), in which no option of training has replaced training rows."""
        return self.columns["target"]

    @property
    def eval_batch_size(self) -> int:
        """Rows of a global batch of validation, test and prediction."""
        return self.batch_size or EVALUATED_ROWS

    def often(self) -> np.ndarray | None:
        """Mean number of draws of each training row in an epoch, with mean 1; None if all are drawn equally."""
        if not self.balance:
            return None
        return balanced_weights(self.columns.get("target"), self.split.train, self.labels, self.balance)

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the batches of the training set, augmented and in a new order in each epoch."""
        return serve(self, self.split.train, train=True, persistent=True)

    @property
    def train_batches(self) -> int:
        """Number of batches of :meth:`train_dataloader`."""
        rows = len(self.split.train)
        return -(-rows // (self.batch_size or usual_batch_size(rows)))

    def fit_dataloader(self) -> DataLoader[Any]:
        """Return the training rows in order and without augmentation, for heads that are fitted on features."""
        return serve(self, drawn_once(self), train=False)

    def whole_dataloader(self) -> DataLoader[Any]:
        """Return all instances in order and without augmentation, in one process and without a trainer."""
        return in_order(self.dataset(np.arange(self.size), train=False), self.size, self.eval_batch_size)

    def image_dataloader(self, wants: Sequence[str] = ()) -> DataLoader[Any]:
        """Return the training rows in order, one per batch and all in every process, for an ``ImageHead``.

        Args:
            wants: Columns that batches must have besides ``input`` and ``target``.

        Raises:
            LDLError: The data lack one of these columns.
        """
        if wants:
            raise LDLError(f"{type(self).__name__} has no {' and '.join(wants)} to learn from; use data that have it")
        return in_order(self.dataset(self.split.train, train=False), len(self.split.train), 1)

    def val_dataloader(self) -> DataLoader[Any] | list[Any]:
        """Return the batches of the validation set in order; an empty list if no rows are held out."""
        return serve(self, self.split.val, train=False, persistent=True) if len(self.split.val) else []

    def test_dataloader(self) -> DataLoader[Any]:
        """Return the batches of the test set of this fold, in order and without augmentation."""
        return serve(self, self.split.test, train=False)

    def predict_dataloader(self) -> DataLoader[Any]:
        """Return the batches of the test set: it is the set that a data module with labels predicts."""
        return self.test_dataloader()

    @override
    def on_before_batch_transfer(self, batch: dict[str, Any], dataloader_idx: int) -> dict[str, Any]:
        # Lightning also calls it for the sample input of an export.
        train = self.trainer is not None and bool(self.trainer.training)
        return with_counts(batch, train) if isinstance(batch, dict) else batch


__getattr__ = old_names(__name__)
