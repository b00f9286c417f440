"""The base of data modules of tables: scaled features, groups and their protocols."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ldl.data.base import LDLDataModule
from ldl.data.row_order import OrderAudit, audit_order
from ldl.data.sources import SOURCES, check_set, download_set
from ldl.data.storage import BatchColumn, LazyColumn, RowFile, Storage, blocks_of
from ldl.data.tables.column_roles import ColumnChoice
from ldl.data.tables.columns import Encoding, describe
from ldl.data.tables.feature_columns import FeatureColumns
from ldl.data.tables.reading import LabelledTable, TableReader
from ldl.data.tables.scaling import FeatureScaler, Scaling
from ldl.data.text import USUAL_TEXT, TextOptions
from ldl.errors import LDLError, some
from ldl.labels import LabelSpace
from ldl.options import buffer, option, options
from ldl.protocols import Fold, kfold, leave_one_group_out, published_split, with_validation
from ldl.tables.entries import is_frame
from ldl.validation.files import check_found

GroupProtocol = Literal["published", "group_exclusive", "leave_one_group_out", "random_kfold", "persons", "shuffled"]
SYNONYMS = {"persons": "group_exclusive", "shuffled": "random_kfold"}
"""Other names of protocols: for groups that are subjects, and as in the literature."""
AUDITED = 50_000
"""Rows of a table on disk that the row-order check reads."""


@options
class ScaledRows(LDLDataModule):
    """Rows of scaled features from a file. A subclass reads the file in ``load``, where it sets ``features``.

    Args:
        path: The file: as given, or relative to the data folder.
        scaling: Scaling of features, learned from the training rows of each fold: ``standard`` (mean 0, standard
            deviation 1), ``hellinger`` (square roots, for histograms), ``quantile_normal`` or ``quantile_uniform``
            (ranks, mapped to such a distribution), ``ranks`` (the same, to a normal one, with ends at 3 and equal
            numbers at their mean rank; for networks), or ``none``.
        clip: Largest magnitude of scaled features; None does not clip.
        missing: ``fill`` replaces missing numbers and dates of named columns by medians of the training rows and adds a
            feature that marks them; NaN in a matrix without named columns, or on disk, is an error. ``keep`` passes NaN
            to a head that supports it (``takes_missing``, such as BoostedTrees). ``refuse`` raises an error. Missing
            text is a category.
        download: Download the public set of this name (``ldl.data.sources.SETS``) if the file is absent.

    Attributes:
        features: (rows, F) as in the file or as encoded, float64; or the file itself, if they stay on disk.
        feature_names: Names of the features; None if unknown.
        mixed: The columns of the file, typed (``ldl.data.tables.columns``), if they are encoded; else None.
        encoding: Encoding of these columns, learned from the training rows, or None.
        scaled: (rows, F) scaled, float32, after ``setup``; computed on demand for features on disk.
    """

    path: str = option(kw_only=True, role="path")
    scaling: Scaling = "standard"
    clip: float | None = option(default=None, above=0, null="no clipping")
    missing: Literal["fill", "keep", "refuse"] = option(default="fill", role="feature")
    download: bool = option(default=False, role="place")

    features: np.ndarray | RowFile = buffer()
    feature_names = None  # type: list[str] | None
    feature_key = None  # type: str | None
    mixed = None  # type: Any
    encoding = None  # type: Encoding | None
    text_encoder, text_tokens = USUAL_TEXT
    scaled: BatchColumn = buffer()
    unserved = (*LDLDataModule.unserved, "features", "mixed")
    _scaled_like_a_task = False

    @property
    def file(self) -> Path:
        """The file ``path``, as given or below the data folder, downloaded if requested."""
        path = self.find(self.path)
        if self.download and not path.is_file():
            if not path.resolve().is_relative_to(self.data_root.resolve()):
                raise LDLError(
                    f"data.path {self.path} leads out of the data folder {self.data_root}, into which sets are "
                    "downloaded; give a path below it, or another --data.root"
                )
            download_set(path.name, path)
        if path.name in SOURCES:
            check_set(path.exists(), path.name, path, None if Path(self.path).is_absolute() else self.data_root)
        return check_found(path, self.path)

    @property
    def has_missing(self) -> bool:
        """Whether a feature of any row is missing."""
        return self.missing == "keep" and any(bool(np.isnan(block).any()) for _, block in blocks_of(self.features))

    def rows_of(self, instances: np.ndarray) -> np.ndarray:
        """Return the rows of the table that belong to some instances; by default one row per instance."""
        return instances

    def prepare_fold(self) -> None:
        """Learn the encoding and the scaling of the features from the training rows."""
        scaler = FeatureScaler(self.scaling, self.clip)
        rows = self.rows_of(self.split.train)
        if self.mixed is not None:
            fill = self.missing == "fill"
            self._encode_by(Encoding.fit(self.mixed.iloc[rows], fill, self.weight_of(rows), self.text_options))
        if isinstance(self.features, RowFile):
            scaler.fit_file(self.features, rows)
        else:
            flags = None if self.encoding is None else self.encoding.flags
            scaler.fit(self.features[rows], self.weight_of(rows), flags)
        scaler.keep_distinct(self.features, rows)
        self._scale_by(scaler)
        self._scaled_like_a_task = False

    @property
    def text_options(self) -> TextOptions:
        """Options of the columns of text."""
        return TextOptions(self.text_encoder, self.text_tokens)

    def weight_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return the weights of rows in encoding and scaling features; None, the default, weighs them equally."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the learned scaling, so that a checkpoint is tested with the scaling of its training."""
        return self.scaler.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Scale as a checkpoint does, until a fit begins. Raises LDLError if the features cannot be scaled so."""
        scaler, before = copy.copy(self.scaler), self.scaler.learned
        scaler.load_state_dict(state_dict)
        same = (np.array_equal(learned, before.get(name, ())) for name, learned in scaler.learned.items())
        if scaler.learned.keys() != before.keys() or not all(same):
            self._scale_by(scaler)
            self._scaled_like_a_task = True
            self._forget_features()

    def prepare_as(self, preprocessing: dict[str, Any] | None) -> None:
        """Order, encode and scale features as a trained task does, or by the fold's training rows.

        Columns are found by name, if the table of training and this one have names. Raises LDLError if the columns
        differ, or the task was trained with other options of scaling.
        """
        if preprocessing is not None and "scaling" in preprocessing:
            if self.mixed is None and "encoding" not in preprocessing:
                self._arrange(preprocessing.get("features"))
            else:
                self._encode_as(preprocessing)
            self.load_state_dict(preprocessing["scaling"])
        elif self._scaled_like_a_task:
            self.prepare_fold()
            self._forget_features()

    @property
    def preprocessing(self) -> dict[str, Any]:
        """Names, encoding and scaling of features, by which :class:`ldl.inference.Predictor` prepares other rows."""
        # Columns of equal names are distinguished by position alone.
        names = self.feature_names if len(set(self.feature_names or ())) == len(self.feature_names or ()) else None
        state = {"features": names, "key": self.feature_key, "scaling": self.scaler.state_dict()}
        return state if self.encoding is None else {**state, "encoding": self.encoding.state()}

    def inputs(self, rows: np.ndarray, seeds: np.ndarray, train: bool) -> Tensor:
        """Return the rows, without augmentation."""
        return self.scaled[torch.from_numpy(rows)]

    def prefetch_rows(self, coming: Callable[[int], np.ndarray]) -> None:
        """Read the coming rows of a table on disk ahead."""
        if isinstance(self.scaled, LazyColumn):
            self.scaled.prefetch_rows(coming)

    def _arrange(self, names: list[str] | None) -> None:
        """Put the features into the order of ``names``. Raises LDLError if the table has others."""
        if self.feature_names is None or self.feature_names == names:
            return
        if names is None:  # unless columns have numbers, they keep their order
            positions = FeatureColumns(len(self.feature_names)).pick(self.feature_names, self.path)
            names = [self.feature_names[position] for position in positions]
        else:
            positions = self._positions(names, self.feature_names)
        if positions == list(range(len(positions))):
            return
        if isinstance(self.features, RowFile):
            raise LDLError(
                f"{self.path}: columns stand in another order than in training, and the table stays on disk; write "
                f"them in the order {some(names)}, or read it into memory with a larger --data.in_memory"
            )
        self.features, self.feature_names = self.features[:, positions], names
        self.prepare_fold()
        self._forget_features()

    def _positions(self, names: Sequence[str], header: Sequence[str]) -> list[int]:
        """Return the positions of a model's columns in the header. Raises LDLError unless both are the same."""
        positions = FeatureColumns(len(names), names).pick(header, self.path)
        if more := [name for name in header if name not in names]:
            raise LDLError(f"{self.path}: the model was not trained on column {some(more)}; leave it out of the file")
        return positions

    def _encode_by(self, encoding: Encoding) -> None:
        self.encoding, self.features = encoding, encoding.transform(self.mixed, self.path)
        self.feature_names = encoding.names
        self.__dict__.pop("input_shape", None)

    def _encode_as(self, preprocessing: dict[str, Any]) -> None:
        """Encode and scale like a trained task, which may accept numbers only. Raises LDLError for other columns."""
        if isinstance(self.features, RowFile) or (self.mixed is None and self.feature_names is None):
            raise LDLError(
                f"{self.path}: the model was trained on named columns in memory; give a .csv or Parquet file, with a "
                "large enough --data.in_memory"
            )
        if self.mixed is None:
            import pandas

            self.mixed = pandas.DataFrame(self.features, columns=self.feature_names)
        header = [str(name) for name in self.mixed]
        if (state := preprocessing.get("encoding")) is None:
            encoding = Encoding.of_numbers(preprocessing.get("features") or header)
        else:
            encoding = Encoding.from_state(state)
        self._positions(encoding.inputs, header)
        if self.encoding is None or encoding.state() != self.encoding.state():
            self._encode_by(encoding)
            self._scale_by(FeatureScaler.from_state(preprocessing["scaling"]))
            self._scaled_like_a_task = True
            self._forget_features()

    def _scale_by(self, scaler: FeatureScaler) -> None:
        if isinstance(self.features, RowFile):
            self.scaled = LazyColumn(self.features, partial(scaler.apply, source=self.path))
        else:
            self.scaled = scaler.apply(self.features, self.path)
        self.scaler = scaler

    def _forget_features(self) -> None:
        """Drop backbone features that were computed from rows in another scaling."""
        if self.features_key is not None:
            self.use_features(None)


@options
class GroupedRows(ScaledRows):
    """Rows that may have groups, such as subjects. A subclass calls ``note`` and ``check_protocol`` in ``load``.

    Args:
        group_key: Name of the groups, a key or a column; None takes the only usual one, such as ``group``, ``person``
            or ``patient_id``, or else the item of the rows if it repeats.
        split_column: Name of the sets of a published split, with the entries ``train``, ``val`` and ``test`` or usual
            synonyms; None takes the only usual one, such as ``split``.
        in_memory: Matrices of more MB than this, as float32, stay on disk in .npy, .npz or Parquet files.
        cache_dir: Folder for rewritten tables, such as Parquet as rows that are read in place; None takes the
            environment's ``LDL_CACHE``, or ``~/.cache/ldl``.
        feature_columns: Names or patterns, such as ``genre_*``, of the columns that are features; by default all
            columns left over.
        drop: Names or patterns of columns that are left out.
        category_columns: Names or patterns of columns that are categories although they hold numbers, such as codes.
        text_columns: Names or patterns of columns of text, which an encoder turns into vectors; ``auto`` takes the
            columns with a usual name, such as ``text`` or ``comment``.
        text_encoder: Encoder of text: ``wordllama``, which pools token vectors, or the folder or name of a model of
            sentence-transformers.
        text_tokens: Largest number of tokens of a text, of which the rest is cut.

    Attributes:
        groups_needed: Whether a given ``group_key`` or ``split_column`` must be in the file.
        sets: (size,) set of every instance in a published split, or None.
    """

    groups_needed = True
    sets = None  # type: np.ndarray | None

    group_key: str | None = option(default=None, role="group")
    split_column: str | None = option(default=None, role="group")
    in_memory: float = option(default=256.0, least=0, role="speed")
    cache_dir: str | None = option(default=None, role="place", is_path=True)
    feature_columns: Sequence[str] | str = option(default=(), role="feature")
    drop: Sequence[str] | str = option(default=(), role="feature")
    category_columns: Sequence[str] | str = option(default=(), role="feature")
    text_columns: Sequence[str] | str = option(default=(), role="feature")
    text_encoder: str = option(default=USUAL_TEXT.encoder, role="feature")
    text_tokens: int = option(default=USUAL_TEXT.tokens, least=1, most=2**20, role="feature")
    protocol = None  # type: Any  # a name after load
    group_names = None  # type: list[str] | None
    _trained_categories = []  # type: list[str]
    _trained_texts = []  # type: list[str]
    _trained_features = []  # type: list[str]

    def note(self, table: LabelledTable, votes: str = "") -> None:
        """Take over a table's features; record and print the names found, to which options are set, after ``votes``."""
        self.features, self.feature_names, self.chosen = table.features, table.columns, table.keys
        self.sets = table.sets
        if is_frame(table.features):
            self.mixed = table.features
        named = [f"{key.rpartition('_')[0]} {name!r}" for key, name in table.keys.items() if name is not None]
        named = [votes] * bool(votes) + named
        if self.group_key is not None and "group_key" in table.keys and table.keys["group_key"] is None:
            named.append(f"no group {self.group_key!r}")
        if table.columns is not None:
            named.append(f"{len(table.columns)} features {some(table.columns)}")
        if self.mixed is not None:
            named.append(describe(self.mixed, self.missing == "fill", self.text_options))
        if table.left_out:
            named.append(f"no features are {some(list(table.left_out))} (data.feature_columns decides)")
        for key, name in table.keys.items():
            setattr(self, key, name)
        self.report_columns(", ".join(filter(None, named)))

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take over the labels of a trained task, which may be tested without the groups that its run names."""
        super().follow(labels, input_shape, preprocessing)
        self.groups_needed = False
        columns = (preprocessing or {}).get("encoding", ())
        self._trained_categories = [column["name"] for column in columns if column["kind"] == "category"]
        self._trained_texts = [column["name"] for column in columns if column["kind"] == "text"]
        names = [column["name"] for column in columns] or (preprocessing or {}).get("features")
        self._trained_features = list(names or [])

    def reader(self, target_key: str | None, values: bool = False, normalize: bool = False) -> TableReader:
        """Return the reader of the file, with further options."""
        return TableReader(
            self.feature_key,
            target_key,
            self.group_key,
            values,
            normalize,
            missing=self.missing != "refuse",
            storage=Storage(self.in_memory, self.cache_dir),
            groups_needed=self.groups_needed,
            selection=self.selection,
            fill=self.missing == "fill",
        )

    @property
    def selection(self) -> ColumnChoice:
        """The columns that are features."""
        codes = [self.category_columns] if isinstance(self.category_columns, str) else list(self.category_columns)
        return ColumnChoice(
            self.feature_columns,
            self.drop,
            [*codes, *self._trained_categories],
            self._trained_texts or self.text_columns,
            self._trained_features,
            split=self.split_column,
            splits=self.protocol in (None, "published"),
        )

    def choose_protocol(
        self, table: LabelledTable, groups: np.ndarray | None, usual: GroupProtocol, needed: Sequence[str]
    ) -> np.ndarray | None:
        """Choose the protocol if none is given, record whether it leaks, and return the groups, numbered from 0.

        Args:
            table: The table, which may name the sets of a published split.
            groups: (N,) of any type, or None if unknown.
            usual: The protocol without a published split.
            needed: Protocols that require groups.

        Raises:
            LDLError: The protocol requires groups or a published split, and there are none.
        """
        if self.protocol is None:
            self.protocol = usual if table.sets is None else "published"
        if self.rule == "published" and table.sets is None:
            raise LDLError(
                f"{self.path} names no sets of a published split; name their column with data.split_column, or set "
                "another data.protocol"
            )
        if groups is None and self.protocol in needed:
            raise LDLError(
                f"{self.path} has no groups to leave out; name them with data.group_key, or set another data.protocol "
                f"than {self.protocol}"
            )
        self.leaky = None if groups is None else self.rule in ("random_kfold", "published")
        if groups is None:
            return None
        names, numbers = np.unique(groups, return_inverse=True)
        self.group_names = [str(name) for name in names]
        return numbers

    def cut(self) -> Fold:
        """Return the rows of one fold. Raises LDLError for a fold that the protocol does not have."""
        if self.rule == "published":
            assert self.sets is not None
            return published_split(self.sets, self.val_fraction, self.fold_seed, self.fold, self.groups)
        if self.rule == "leave_one_group_out":
            assert self.groups is not None
            rows = leave_one_group_out(self.groups, self.fold)
            return with_validation(*rows, self.val_fraction, self.fold_seed, self.fold, self.groups)
        return self.cut_kfold()

    def cut_kfold(self) -> Fold:
        """Return the rows of one of ``folds`` folds, of rows or of whole groups. Raises LDLError."""
        groups = self.groups if self.rule == "group_exclusive" else None
        return kfold(self.size, self.folds, self.fold, self.fold_seed, self.val_fraction, groups)

    @property
    def rule(self) -> str:
        """The protocol without synonyms."""
        protocol = str(self.protocol)
        return SYNONYMS.get(protocol, protocol)

    @property
    def num_folds(self) -> int:
        """Number of folds: 1 if published, one for each group if groups are left out in turn, else ``folds``."""
        if self.rule == "published":
            return 1
        if self.rule == "leave_one_group_out" and self.groups is not None:
            return len(np.unique(self.groups))
        return self.folds

    @cached_property
    def order_audit(self) -> OrderAudit | None:
        """Row-order check for unknown groups, after ``setup``; None if the groups are known."""
        return audit_order(*self.audited) if self.groups is None else None

    @property
    def audited(self) -> tuple[np.ndarray, np.ndarray]:
        """Features (n, F) and labels (n, C) that the row-order check reads: all, or the middle of a table on disk."""
        features, rows = self.features, slice(None)
        if isinstance(features, RowFile):
            start = max(0, self.size - AUDITED) // 2
            rows = slice(start, start + AUDITED)
            features = features[rows].astype(np.float64)
        if self.values is not None:
            return features, self.values[rows].reshape(len(features), -1)
        return features, self.columns["target"][torch.arange(self.size)[rows]].numpy()
