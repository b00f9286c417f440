"""What heads are fitted on: the rows of all processes in the order of the data set, in files where they are many."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from torch import Tensor

from ldl.collective import Collective, interleave
from ldl.data.row_file import RowFile, RowWriter
from ldl.errors import LDLError

Columns = dict[str, Tensor]


def of_all(part: Columns, collective: Collective) -> Columns:
    """The rows of a batch of all processes, in order, from those that were dealt to each."""
    if collective.world_size == 1:
        return part
    return {name: interleave(collective.gather(column)) for name, column in part.items()}


def sizes_of_all(rows: Tensor, collective: Collective) -> list[tuple[int, ...]]:
    """The size of one row in every process, by rank, on all of them. Every process calls it."""
    size = torch.tensor([rows.shape[1:]], device=rows.device)
    return [tuple(part[0].tolist()) for part in collective.gather(size)]


def put_together(parts: Iterator[Columns], rows: int, in_memory: float, cache: Path) -> Columns:
    """The columns of all parts, one after the other.

    Where they would take more than ``in_memory`` MB of a processor's memory, they are written to files and come back as
    tensors that map these: read where they are looked at. The files have no names any more, and so go with the process.

    Args:
        parts: Columns of equal names, ``rows`` in all; there is one part at least.
        rows: How many.
        in_memory: MB.
        cache: Folder in which files may be written.

    Raises:
        LDLError: there is no room for them.
    """
    first = next(parts)
    size = rows * sum(column[:1].nbytes / max(1, len(column[:1])) for column in first.values())
    plain = all(column.device.type == "cpu" and column.dtype != torch.bfloat16 for column in first.values())
    every = chain([first], parts)
    if size <= in_memory * 2**20 or not plain:
        held = list(every)
        return {name: torch.cat([part[name] for part in held]) for name in first}
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=cache, prefix="fit-", ignore_cleanup_errors=True) as folder:
            return _mapped(every, first, rows, Path(folder))
    except OSError as error:
        raise LDLError(f"{cache} cannot be written: {error.strerror}; set data.cache_dir or LDL_CACHE") from error


def _mapped(parts: Iterator[Columns], first: Columns, rows: int, folder: Path) -> Columns:
    files = {name: folder / f"{name}.npy" for name in first}
    with ExitStack() as stack:
        writers = {
            name: stack.enter_context(RowWriter(files[name], column.numpy().dtype, (rows, *column.shape[1:])))
            for name, column in first.items()
        }
        for part in parts:
            for name, column in part.items():
                writers[name].append(column.numpy())
    # Heads may write: to files that nobody else has.
    return {name: torch.from_numpy(RowFile.open(file).map("r+")) for name, file in files.items()}
