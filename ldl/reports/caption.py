"""What a chart or a card says of the run that it is of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ldl.data.base import LDLDataModule
from ldl.head import Head


def caption(head: Head, data: Any, folder: Path, folds: int | None = None) -> str:
    """Head, data, protocol with its fold, or all ``folds``, and the name of the run."""
    made = type(head).__name__
    if isinstance(data, LDLDataModule):
        made += f" on {data.title}"
        several = getattr(data, "folds", 0) and data.protocol != "none"
        which = f", {folds} folds together" if folds else f", fold {data.fold}" if several else ""
        made += f", {data.protocol}{which}"
    run = folder.parent.name if folder.name.startswith("fold_") else folder.name
    return f"{made}  ·  {run}"
