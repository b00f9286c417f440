"""What a chart or a card says of the run that it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldl.data.base import LDLDataModule
from ldl.head import Head


def data_name(data: Any) -> str:
    """What a data set is called: its file, or the class of its module."""
    file = Path(str(getattr(data, "path", None) or ""))
    return file.name if file.suffix and not file.is_dir() else type(data).__name__


def caption(head: Head, data: Any, folder: Path, folds: int | None = None) -> str:
    """Head, data, protocol with its fold, or all ``folds``, and the name of the run."""
    made = f"{type(head).__name__} on {data_name(data)}" if data is not None else type(head).__name__
    if isinstance(data, LDLDataModule):
        several = getattr(data, "folds", 0) and data.protocol != "none"
        which = f", {folds} folds together" if folds else f", fold {data.fold}" if several else ""
        made += f", {data.protocol}{which}"
    run = folder.parent.name if folder.name.startswith("fold_") else folder.name
    return f"{made}  ·  {run}"
