"""Images of a list or a folder, with votes or values."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from typing_extensions import override

from ldl.annotations import Annotations
from ldl.data.annotated import Annotated
from ldl.data.base import Loaded
from ldl.data.images.module import Images
from ldl.data.images.records import PUBLISHED_SPLIT, ImageRecords, SplitProtocol, SplitRequest, TrainTest
from ldl.data.names import VALUE_KEYS, find_group, find_name, find_split, find_usual, split_sets
from ldl.data.pictures import SUFFIXES, list_pictures, one_side
from ldl.data.sources import SOURCES, check_set
from ldl.data.tables.tabular_values import Valued
from ldl.errors import LDLError, some
from ldl.labels import LabelSpace
from ldl.options import option, options
from ldl.protocols import Fold, kfold, leave_one_group_out
from ldl.tables import open_named
from ldl.tables.csv_table import CsvTable
from ldl.tables.parquet import Parquet
from ldl.tables.roles import SPLIT_SETS, USUAL, usual_columns
from ldl.validation.files import as_stored, check_found

if TYPE_CHECKING:
    import pandas as pd

ImageProtocol = Literal["published", "group_exclusive", "leave_one_group_out", "random_kfold"]


def lists_images(table: CsvTable | Parquet) -> bool:
    """Return whether one of the image files that a table names in a usual column is there."""
    folder = _folder_of(table.path)
    return any((folder / name).is_file() for name in listed_names(table))


def listed_names(table: CsvTable | Parquet, column: str | None = None) -> list[str]:
    """Return the entries of a column that end as image files do, as paths below the folder of the table.

    None takes the columns with usual names of images.
    """
    columns = _image_columns(table) if column is None else [column]
    return [as_stored(name, _folder_of(table.path)) for column in columns for name in _images_in(table, column)]


def _images_in(table: CsvTable | Parquet, column: str) -> list[str]:
    """Return the entries of a column that end as image files do."""
    names = [str(entry).strip() for entry in table.frame([column])[column]]
    return [name for name in names if name.lower().endswith(SUFFIXES)]


def _image_columns(table: CsvTable | Parquet) -> list[str]:
    """Return the columns that may be the image files, by their names and, if in doubt, by their entries."""
    usual = usual_columns(table.header, "image")
    if len(usual) == 1:
        return usual
    named = [column for column in usual or usual_columns(table.header, "item") if _images_in(table, column)]
    return named or usual


def listed_files(table: CsvTable | Parquet, chosen: str | None) -> tuple[str, list[str]]:
    """Return the column of the image files of a list, and their paths relative to the folder of the list.

    Args:
        table: The list.
        chosen: The column, or None to look for a usual name.

    Raises:
        LDLError: The column is absent, or an entry names no image or is a URL.
    """
    path = table.path
    table.others()  # every column has a name
    column = find_usual(path, _image_columns(table), "image files", "path_column", chosen, table.header)
    if column is None:
        usual = ", ".join(USUAL["image"])
        raise LDLError(
            f"{path}: no image files under {usual}; it has {some(table.header, 20)}: pass --data.path_column"
        )
    why = ["which names no image"] if isinstance(table, CsvTable) else []
    files = list(map(str, table.groups(column, *why)))
    if remote := [file for file in files if "://" in file]:
        raise LDLError(
            f"{path}: {len(remote)} images are at a URL, the first is {remote[0]}; download them, and list the files"
        )
    return column, [as_stored(file, _folder_of(path)) for file in files]


def _folder_of(path: Path) -> Path:
    """Return the folder that paths in a list are relative to; a list in Parquet may be a folder of files."""
    return path if path.is_dir() else path.parent


def _groups(request: SplitRequest) -> np.ndarray:
    if request.records.groups is None:
        raise LDLError("the images have no groups to keep apart; name their column with data.group_key")
    return request.records.groups


def _published(request: SplitRequest) -> TrainTest | Fold:
    if "part" not in request.records.facts:
        raise LDLError(
            "protocol published follows a split that the list names; give its column with data.split_column, or set "
            "another data.protocol"
        )
    return PUBLISHED_SPLIT.rows(request)


def _random(request: SplitRequest, groups: np.ndarray | None = None) -> TrainTest:
    fold = kfold(len(request.records), request.folds, request.fold, request.seed, 0.0, groups)
    return fold.train, fold.test


@dataclass
class Listing:
    """The rows of a list of images, one or several for each image.

    Attributes:
        frame: The columns, a pandas DataFrame.
        folder: Folder that the files are relative to.
        source: Name of the list, for messages.
        column: Column of the files.
        split: Column of the sets of a published split, or None.
        group: Column of the groups, or None.
        table: The table; None for a folder.
    """

    frame: pd.DataFrame
    folder: Path
    source: str
    column: str
    split: str | None = None
    group: str | None = None
    table: CsvTable | Parquet | None = None

    def spell(self, file: str) -> str:
        """Return a path under the one spelling by which images are compared."""
        return as_stored(file, self.folder)

    def check_repeats(self) -> None:
        """Raise LDLError if an image is listed twice."""
        files = self.frame[self.column]
        if (twice := files.duplicated()).any():
            raise LDLError(
                f"{self.source}: {twice.sum()} rows repeat an image, the first is {files[twice].iloc[0]}; keep one row "
                "an image"
            )


@options
class ListedImages(Images):
    """Images of a table or a folder. A subclass makes their targets.

    Args:
        path: A .csv or Parquet file with one column of image files, relative to its folder; or a folder of images.
        protocol: Evaluation protocol; None is ``published`` if a column names the sets of a split, else
            ``group_exclusive`` if groups are known, else ``random_kfold``.
        crop_size: Side of the images in pixels: an image is scaled to fit a square, and its border fills the rest. None
            takes the longer side of the images, if all have one size.
        channels: 3 (RGB), or 1 (grey).
        path_column: Column of the image files; None takes ``path``, ``image`` or another usual name.
        split_column: Column of the sets of a published split: ``train``, ``val`` and ``test``, or usual synonyms; None
            takes the only usual one, such as ``split``.
        group_key: Column of the groups; None takes the only usual one, such as ``patient``.
    """

    protocols: ClassVar[dict[str, SplitProtocol]] = {
        "published": replace(PUBLISHED_SPLIT, rows=_published),
        "group_exclusive": SplitProtocol(lambda request: _random(request, _groups(request)), False),
        "leave_one_group_out": SplitProtocol(
            lambda request: leave_one_group_out(_groups(request), request.fold),
            False,
            lambda request: len(np.unique(_groups(request))),
        ),
        "random_kfold": SplitProtocol(_random, True),
    }

    path: str = option(kw_only=True, role="path")
    protocol: ImageProtocol | None = option(default=None, role="fold")  # a name after load
    crop_size: int | None = option(default=128, least=8, most=4096, what="in pixels", null="the size of the images")
    channels: Literal[1, 3] = 3
    path_column: str | None = option(default=None, role="fold")
    split_column: str | None = option(default=None, role="group")
    group_key: str | None = option(default=None, role="group")

    _needed = True

    def follow(
        self, labels: LabelSpace, input_shape: tuple[int, ...] | None, preprocessing: dict[str, Any] | None
    ) -> None:
        """Take over the labels of a trained task, which may be tested without the groups and parts of its run."""
        super().follow(labels, input_shape, preprocessing)
        self._needed = False

    def locate(self) -> Path:
        """Return the file or folder ``path``. Raises LDLError if it is absent."""
        path = self.find(self.path)
        names = [base.__name__ for base in type(self).__mro__ if base.__name__ in SOURCES]
        if names:
            check_set(path.exists(), names[0], path, None if Path(self.path).is_absolute() else self.data_root)
        return check_found(path, self.path)

    def read(self) -> Listing:
        """Read the list, or the names in the folder. Raises LDLError."""
        path = self.locate()
        if (table := open_named(path)) is not None:
            return self.of_table(table)
        if not path.is_dir():
            raise LDLError(f"{path}: a list of images is a .csv or Parquet file, or a folder of images")
        return self._of_folder(path)

    def of_table(self, table: CsvTable | Parquet) -> Listing:
        """Return the images of a table. Raises LDLError for a missing column, or an entry without a name."""
        path, header = table.path, table.others()
        column, files = listed_files(table, self.path_column)
        others = [name for name in header if name not in {column, *self.columns_of_votes(header, path)}]
        split = find_split(path, others, self.split_column, self._needed)
        named = header if self.group_key else others  # a rater is a group only if that is the wish
        group = find_group(path, [name for name in named if name != split], self.group_key, self.group_needed)
        frame = table.texts(header)
        for name in filter(None, (split if self._splits else None, group)):
            frame[name] = table.groups(name)
        frame[column] = files
        return Listing(frame, _folder_of(path), str(path), column, split, group, table)

    @property
    def _splits(self) -> bool:
        """Whether the protocol follows a published split, if there is one."""
        return self.protocol in (None, "published")

    def columns_of_votes(self, header: list[str], table: Path) -> list[Any]:
        """Return the columns that are votes, or describe votes; none by default."""
        return []

    @property
    def group_needed(self) -> bool:
        """Whether a given ``group_key`` must be in the list."""
        return self._needed

    def _of_folder(self, folder: Path) -> Listing:
        import pandas as pd  # takes a second

        files = [path.relative_to(folder) for path in list_pictures(folder)]
        above = [file.parts[:-1] for file in files]
        frame = pd.DataFrame({"path": [file.as_posix() for file in files]})
        parts = {names[0].lower() if names else "" for names in above}
        if split := len(parts) > 1 and parts <= SPLIT_SETS.keys():
            frame["split"], above = [names[0] for names in above], [names[1:] for names in above]
        frame["folder"] = [names[0] if names else "" for names in above]
        return Listing(frame, folder, str(folder), "path", "split" if split else None)

    def records_of(self, listing: Listing) -> ImageRecords:
        """Return one record for each image, without values.

        Raises:
            LDLError: A set of the split is unknown, or an image has several sets or groups.
        """
        frame, column = listing.frame, listing.column
        firsts = frame[~frame[column].duplicated()]
        split = listing.split if self._splits else None
        for name in filter(None, (split, listing.group)):
            several = frame.groupby(column, sort=False)[name].nunique()
            if len(several := several[several > 1]):
                raise LDLError(
                    f"{listing.source}: {len(several)} images have several entries of {name!r}, the first is "
                    f"{several.index[0]}; give each image one"
                )
        facts = {}
        if split is not None:
            facts["part"] = split_sets(Path(listing.source), split, firsts[split])
        groups = None if listing.group is None else np.array(firsts[listing.group], str)
        return ImageRecords(listing.folder, list(firsts[column]), np.full(len(firsts), np.nan), groups, facts=facts)

    def settle(self, listing: Listing, records: ImageRecords, content: str) -> None:
        """Choose the protocol, and print the columns that are used and the ``content`` of the list. Raises LDLError."""
        if self.protocol is None:
            usual: ImageProtocol = "random_kfold" if records.groups is None else "group_exclusive"
            self.protocol = "published" if listing.split else usual
        self.leaky, published = self._protocol.leaky, self.protocol == "published"
        if listing.table is not None:
            names = {"path_column": listing.column, "split_column": listing.split, "group_key": listing.group}
            self.chosen = {**self.chosen, **names}
            for name, value in names.items():
                setattr(self, name, value)
        named = {"images": listing.column, "split": listing.split if published else None, "group": listing.group}
        columns = [f"{role} {name!r}" for role, name in named.items() if name] if listing.table is not None else []
        unused = "" if published or not listing.split else f"; protocol {self.protocol} does not use {listing.split!r}"
        self.report_columns(", ".join([*columns, content]) + unused)

    @property
    @override
    def preprocessing(self) -> dict[str, Any]:
        return {**super().preprocessing, "faces": False}

    def side(self, records: ImageRecords) -> int:
        """Return the side of the crops in pixels. Raises LDLError for images of several sizes and no ``crop_size``."""
        return self.crop_size or one_side(records.paths())


@options
class ImageLDL(Annotated, ListedImages):
    """Your own images with votes or label distributions: ``--data.path votes.csv``.

    A .csv or Parquet file lists the images in the column ``path``. Votes stand beside it in one of three layouts: a
    column of counts or shares for each label (named ``label:NAME``, or ``label_columns``), one row for each vote
    (columns ``rater`` and ``label``), or a column for each rater (``rater_columns``). They may also stand in a file of
    their own (``votes``). In a folder of images, the sub-folders are the classes, and each image has one vote;
    sub-folders ``train``, ``val`` and ``test`` above them are the parts of a split.

    Protocols: ``published`` (the column ``split``); ``group_exclusive`` (``folds`` folds of whole groups) and
    ``leave_one_group_out`` (one fold per group) if groups are known; ``random_kfold`` (random images, which leaks
    groups). Copies of an image stay in one part, except in ``published``.

    Examples:
        >>> import pandas as pd
        >>> from PIL import Image
        >>> from ldl.data import ImageLDL
        >>> names = [f"{number}.png" for number in range(20)]
        >>> for grey, name in enumerate(names):
        ...     Image.new("L", (32, 32), grey).save(name)
        >>> pd.DataFrame({"path": names, "label:no": 1, "label:yes": 3}).to_csv("votes.csv", index=False)
        >>> data = ImageLDL("votes.csv", crop_size=32)
        >>> data.setup()
        taken from votes.csv: images 'path', counts layout, 20 items, 2 nominal labels, 4 votes an item
        cropping 20 images to 32x32 into .../crops
        >>> data.columns["target"][0]
        tensor([0.2500, 0.7500])
    """

    def load(self) -> Loaded:
        """Read the list and the votes, and make or find the crops. Raises LDLError."""
        listing = self.read()
        apart = self.votes_apart(Path(listing.source))
        records = self.records_of(listing)
        frame = listing.frame
        if listing.table is None and apart is None:
            if (loose := frame["folder"] == "").any():
                raise LDLError(
                    f"{listing.source}: {loose.sum()} images lie in no sub-folder, which would be their class, the "
                    f"first is {frame['path'][loose].iloc[0]}; move them, or give their votes with --data.votes FILE"
                )
            frame = frame[["path"]].assign(label=frame["folder"])
        if apart is not None:
            listing.check_repeats()
        votes, rows = self.annotate(frame, records.files, listing.source, listing.column, listing.spell, apart=apart)
        records = replace(records.take(rows), values=votes.shares)
        if records.groups is None and apart is not None and votes.groups is not None:
            records, listing.group = replace(records, groups=np.array(list(map(str, votes.groups)))), apart.group
        self._check(votes, records, listing.source)
        self.settle(listing, records, self.describe_votes(votes))
        copies = self.cut_out(records, self.side(records), None)
        columns = {"target": torch.tensor(self.records.values, dtype=torch.float32)}
        self.annotations = votes.take(self.rows)
        if votes.counted:
            columns["votes"] = torch.tensor(self.annotations.votes, dtype=torch.float32)
        return Loaded(votes.labels, columns, groups=self.records.groups, names=self.records.files, copies=copies)

    def columns_of_votes(self, header: list[str], table: Path) -> list[Any]:
        """Return the columns that are votes, or describe votes; none if votes stand in a file of their own."""
        if self.votes_file(table) is not None:
            return []
        with suppress(LDLError):  # annotate reports it
            columns = self.vote_columns(header, str(table))
            return [name for name in columns.all if name not in (columns.item, columns.group)]
        return []

    @property
    def group_needed(self) -> bool:
        """Whether a given ``group_key`` must be in the list: it may be in a file of votes."""
        return super().group_needed and self.votes is None

    def _check(self, votes: Annotations, records: ImageRecords, source: str) -> None:
        """Raise LDLError for shares of different sums, and for a ``group_key`` that no file has."""
        sums = votes.votes
        if not votes.counted and np.ptp(sums) > 0.01 * sums.max():
            first, last = (records.files[row] for row in (sums.argmin(), sums.argmax()))
            raise LDLError(
                f"{source}: the shares of {first} sum to {sums.min():g}, and those of {last} to {sums.max():g}; "
                "correct them, or name the column with the number of votes with --data.votes_column"
            )
        if records.groups is None and self.group_key is not None and self._needed:
            raise LDLError(f"neither {source} nor {self.votes} has a column {self.group_key!r}; correct data.group_key")


@options
class ImageValues(Valued, ListedImages):
    """Your own images with one value each: ``--data.path values.csv``.

    A .csv or Parquet file lists the images in the column ``path``, and their values in the column ``value``. The values
    are encoded as label distributions. Use ``FaceFolder`` for faces that are placed by boxes or a detector.

    Protocols: as of ``ImageLDL``.

    Args:
        value_key: Column of the values; None takes ``value``, ``age`` or another usual name.

    Examples:
        >>> import pandas as pd
        >>> from PIL import Image
        >>> from ldl.data import ImageValues
        >>> names = [f"{number}.png" for number in range(20)]
        >>> for grey, name in enumerate(names):
        ...     Image.new("L", (32, 32), grey).save(name)
        >>> pd.DataFrame({"path": names, "value": range(20)}).to_csv("sizes.csv", index=False)
        >>> data = ImageValues("sizes.csv", crop_size=32, unit="mm")
        >>> data.setup()
        taken from sizes.csv: images 'path', value 'value'
        labels of sizes.csv: 0 to 19 in steps of 1 (20), sigma 2; data.step and data.sigma chosen from the file's values
        cropping 20 images to 32x32 into .../crops
        >>> data.labels.unit, len(data.labels)
        ('mm', 20)
    """

    value_key: str | None = option(default=None, role="label")

    def load(self) -> Loaded:
        """Read the list, and make or find the crops. Raises LDLError."""
        listing = self.read()
        if listing.table is None:
            raise LDLError(
                f"{listing.source} is a folder; ImageValues needs a .csv or Parquet file with a value an image"
            )
        records = self.records_of(listing)
        listing.check_repeats()
        path, header = listing.table.path, listing.table.others()
        key = find_name(path, header, "value", "value_key", self.value_key, VALUE_KEYS)
        self.value_key = self.chosen["value_key"] = key
        records = replace(records, values=listing.table.numbers([key])[:, 0])
        self.settle(listing, records, f"value {key!r}")
        labels = self.choose_labels(records.values, self.path)
        copies = self.cut_out(records, self.side(records), None)
        values, groups, files = self.records.values, self.records.groups, self.records.files
        return Loaded(labels, {"target": self.encode_as(labels)(values)}, values, groups, files, copies=copies)
