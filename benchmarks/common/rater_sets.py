"""Sets of text with votes whose raters are known, as files for ``ldl -c text``, and their folds.

The sets lie below ``LDL_DATA/text``. ldl does not ship them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ldl.annotations.votes import SingleVotes
from ldl.data import TabularLDL
from ldl.data.storage import pieces
from ldl.errors import LDLError
from ldl.labels import LabelSpace
from ldl.protocols import Fold
from ldl.validation.files import data_folder

FOLDS, VAL_FRACTION = 5, 0.1
MISSING = ("nan", "DATA_EXPIRED", "CONSENT_REVOKED")
"""Entries of CSC's raters without an answer."""


class RaterSet(NamedTuple):
    """A set of text with votes.

    Attributes:
        read: Returns a table with one row a vote: ``item``, ``rater``, ``label``, features of the rater, the columns of
            text, and ``split`` or ``group`` if the set has one.
        texts: Columns of text.
        label_type: ``ordinal`` or ``nominal``.
        features: Columns that describe the rater.
        published: Whether the set has a published split. Others have folds.
    """

    read: Callable[[], pd.DataFrame]
    texts: tuple[str, ...]
    label_type: str
    features: tuple[str, ...] = ()
    published: bool = False

    @property
    def folds(self) -> int:
        """Number of folds that are tested."""
        return 1 if self.published else FOLDS

    @property
    def options(self) -> dict[str, Any]:
        """Options of the data beside those of ``-c text``: the type of the labels and the number of folds."""
        options: dict[str, Any] = {"label_type": self.label_type}
        return options if self.published else {**options, "folds": FOLDS}


def read_popquorn() -> pd.DataFrame:
    """Return the votes of POPQUORN on the offensiveness of comments, from 1 to 5."""
    table = pd.read_csv(find("popquorn/offensiveness.csv"))
    names = {"instance_id": "item", "user_id": "rater", "offensiveness": "label"}
    return table.rename(columns=names).astype({"label": int})


def read_md_agreement() -> pd.DataFrame:
    """Return the votes of MD-Agreement on the offensiveness of tweets, 0 or 1, with the published split."""
    rows = []
    for part in ("train", "dev", "test"):
        entries = json.loads(find(f"md_agreement/MD-Agreement_{part}.json").read_text(encoding="utf-8"))
        for item, entry in entries.items():
            votes = zip(entry["annotators"].split(","), entry["annotations"].split(","))
            rows += [(f"{part}{item}", rater, label, entry["text"], part) for rater, label in votes]
    table = pd.DataFrame(rows, columns=["item", "rater", "label", "text", "split"])
    return table.replace({"split": {"dev": "val"}})


def read_csc() -> pd.DataFrame:
    """Return the votes of CSC's development set on the sarcasm of a response to a context, from 1 to 6.

    The items of a context are one group. The votes of the 704 test items are not public.
    """
    raters = json.loads(without_trailing_commas(find("csc/CSC_annotators_meta.json").read_text(encoding="utf-8")))
    entries = json.loads(find("csc/CSC_dev.json").read_text(encoding="utf-8"))
    contexts = pd.factorize(pd.Series([entry["text"]["context"] for entry in entries.values()]))[0]
    rows = []
    for (item, entry), context in zip(entries.items(), contexts):
        for rater, label in entry["annotations"].items():
            answers = [raters.get(rater, {}).get(name, "nan") for name in ("Gender", "Age")]
            known = [None if answer in MISSING else answer for answer in answers]
            rows.append((item, rater, int(label), *entry["text"].values(), f"context{context:02d}", *known))
    columns = ["item", "rater", "label", *next(iter(entries.values()))["text"], "group", "gender", "age"]
    return pd.DataFrame(rows, columns=columns)


def without_trailing_commas(text: str) -> str:
    """Return JSON without the commas before closing brackets, with which CSC's raters were released."""
    return re.sub(r",\s*([}\]])", r"\1", text)


def find(name: str) -> Path:
    """Return a file below the folder of text. Raises LDLError if it is absent."""
    path = data_folder() / "text" / name
    if not path.is_file():
        raise LDLError(f"no file at {path}; set LDL_DATA to the folder of the data")
    return path


SETS = {
    "POPQUORN": RaterSet(read_popquorn, ("text",), "ordinal", ("gender", "race", "age", "occupation", "education")),
    "MD-Agreement": RaterSet(read_md_agreement, ("text",), "nominal", published=True),
    "CSC": RaterSet(read_csc, ("context", "response"), "ordinal", ("gender", "age")),
}
"""The sets by their names."""


class Files(NamedTuple):
    """Files for ``ldl -c text``: the comments, with one row an item, and the votes, with one row a vote."""

    comments: Path
    votes: Path


def write_files(name: str, folder: Path) -> Files:
    """Write the two files of a set below a folder, if they are absent. Raises LDLError if the set is absent."""
    chosen = SETS[name]
    files = Files(folder / f"{name}_comments.csv", folder / f"{name}_votes.csv")
    if not files.votes.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        table = chosen.read()
        beside = [column for column in ("split", "group") if column in table]
        table.drop_duplicates("item")[["item", *chosen.texts, *beside]].to_csv(files.comments, index=False)
        table[["item", "rater", "label", *chosen.features]].to_csv(files.votes, index=False)
    return files


class Sample(NamedTuple):
    """A fold of a set, as the data module of ``ldl -c text`` gives it.

    Attributes:
        features: (N, F) float32, the vectors of the texts, scaled by the training items.
        single: The single votes.
        labels: The labels.
        split: The items of the training, validation and test set.
    """

    features: np.ndarray
    single: SingleVotes
    labels: LabelSpace
    split: Fold

    def votes_on(self, rows: np.ndarray) -> SingleVotes:
        """Return the votes on the items ``rows``, numbered from 0."""
        return self.single.take(rows)


def open_folds(name: str, folder: Path) -> Iterator[Sample]:
    """Yield the folds of a set, with vectors, scaling and split of ``ldl -c text``."""
    chosen, files = SETS[name], write_files(name, folder)
    texts: Any = {"text_columns": "auto", "scaling": "standard", "val_fraction": VAL_FRACTION}
    data = TabularLDL(path=str(files.comments), votes=str(files.votes), **texts, **chosen.options)
    data.setup()
    single = data.single_votes
    if single is None:
        raise LDLError(f"{files.votes} names no raters")
    for fold in range(chosen.folds):
        if data.num_folds > 1:
            data.select_fold(fold)
        features = np.concatenate([np.asarray(block) for block in pieces(data.scaled)])
        yield Sample(features.astype(np.float32), single, data.labels, data.split)
