"""A checkpoint as one file that runs without ldl: preprocessing, network, head, values and intervals."""

from __future__ import annotations

from pathlib import Path

from ldl.cli.command import VerbParser
from ldl.errors import LDLError
from ldl.export import Exported, export
from ldl.export.formats import FORMATS
from ldl.running.quiet import silence


def run(args: list[str]) -> None:
    """Export a checkpoint. Raises LDLError."""
    parser = VerbParser("export", __doc__)
    parser.add_argument("checkpoint", help="a checkpoint, such as RUN/checkpoints/last.ckpt")
    parser.add_argument("--to", default="onnx", help=f"the format: {', '.join(FORMATS)}; onnx where nothing is given")
    parser.add_argument("--out", help="the file to write; that of the checkpoint with another ending by default")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    given = parser.parse_args(args)
    silence()
    if not Path(given.checkpoint).is_file():
        raise LDLError(f"no checkpoint at {given.checkpoint}; give a file, such as RUN/checkpoints/last.ckpt")
    suffix = FORMATS[given.to].suffix if given.to in FORMATS else ""
    out = given.out or Path(given.checkpoint).with_suffix(suffix)
    print(line(export(given.checkpoint, out, given.to, given.force)))


def line(done: Exported) -> str:
    """What was written, in one line."""
    said = f"wrote {done.file}, {done.size / 1e6:.2f} MB; "
    if done.parity is None:
        return said + "not compared with torch, for onnxruntime is not installed: pip install 'ldl[onnx]'"
    largest, apart, rows = done.parity
    said += f"it differs from torch by {largest:.1g} at most, on {rows - apart} of {rows} rows drawn"
    return said + (f"; {apart} lie on a threshold, where rounding decides" if apart else "")
