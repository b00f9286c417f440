"""``--stage predict`` with a path: everything that lies there is predicted, and the checkpoint says how it is read."""

from __future__ import annotations

import os
from typing import Any

from ldl.backbones.base import Backbone
from ldl.checkpoint import CHECKPOINT_KEY
from ldl.data.base import LDLDataModule
from ldl.data.picture_folder import PictureFolder
from ldl.inference.table_file import TableFile
from ldl.inference.whole_pictures import WholePictures
from ldl.options import options_of
from ldl.running.arguments import options_of as given_options
from ldl.running.arguments import words_of
from ldl.spec import from_spec

LABELLING = {
    f"--data.{name}"
    for name in (
        *("group_key", "target_key", "value_key", "normalize", "label_names", "label_values", "label_unit"),
        *("low", "high", "step", "unit", "sigma", "encoder", "balance"),
    )
}
"""Options that say how labels and groups are read, laid out and drawn."""


def with_new_data(args: list[str], checkpoint: dict[str, Any], path: str) -> list[str]:
    """The command line with the class of data that serves all instances at ``path``, in place of the configured one.

    The latter knows one data set, its labels and its folds; it stays where the checkpoint does not say how inputs are
    made, ``path`` is a list of pictures, or another of its options is given, such as a protocol. Options that say of
    labels and groups, which a prediction does without, are taken out.
    """
    served = _serves(checkpoint[CHECKPOINT_KEY], path)
    if served is None:
        return args
    known = {f"--data.{name}" for name in options_of(served)}
    given = [option for option in given_options(args) if option.name not in LABELLING - known]
    own = [number for number, option in enumerate(given) if option.name.startswith("--data.")]
    if {given[number].name for number in own} - known:
        return args
    return [*words_of(given[: own[0]]), "--data", served.__name__, *words_of(given[own[0] :])]


def _serves(described: dict[str, Any], path: str) -> type[LDLDataModule] | None:
    known = described.get("preprocessing") or {}
    if "scaling" in known:
        return TableFile
    if path.lower().endswith((".csv", ".json", ".txt")) and os.path.isfile(path):
        return None
    if "crop_size" in known:
        return PictureFolder
    backbone = from_spec(described["backbone"], Backbone)  # type: ignore[type-abstract]
    return WholePictures if backbone.gives_maps else None
