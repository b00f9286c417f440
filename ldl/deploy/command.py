"""The subcommands ``ldl export`` and ``ldl demo``, which take a checkpoint."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

from ldl.command.options import CommandParser
from ldl.deploy.demo_server import serving
from ldl.deploy.export import Exported
from ldl.deploy.export import export as export_checkpoint
from ldl.errors import LDLError
from ldl.run.output import silence

LARGEST_PORT = 65535


def export(args: list[str]) -> None:
    """Export a checkpoint to an ONNX file that runs without ldl.

    The file has the preprocessing, the network, the head, values and intervals.
    """
    parser = CommandParser("export", export.__doc__)
    parser.add_argument("checkpoint", type=Path, help="a checkpoint, such as RUN/checkpoints/last.ckpt")
    parser.add_argument("--to", default="onnx", help="format of the file, onnx")
    parser.add_argument("--out", type=Path, help="file to write; by default beside the checkpoint")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    options = parser.parse_args(args)
    silence()
    out = options.out or options.checkpoint.with_suffix(".onnx")
    print(_describe(export_checkpoint(options.checkpoint, out, options.to, options.force)))


def demo(args: list[str]) -> None:
    """Show the predictions of a trained model on a local web page.

    The page takes an image or a row, and shows its distribution and its evidence.
    """
    parser = CommandParser("demo", demo.__doc__)
    parser.add_argument("checkpoint", help="a model of rows, or of crops of images, such as RUN/checkpoints/last.ckpt")
    parser.add_argument("--detector", help="detector of faces in images: mtcnn")
    parser.add_argument("--port", type=int, default=7860, help="port on this machine (%(default)s); 0: a free one")
    options = parser.parse_args(args)
    if not 0 <= options.port <= LARGEST_PORT:
        raise LDLError(f"--port {options.port} must be in 0..{LARGEST_PORT}")
    silence()
    stop = threading.Event()
    for signal_number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Without this handler, the signal would end the process before it deletes its images.
        signal.signal(signal_number, lambda *_: stop.set())
    with serving(options.checkpoint, options.port, options.detector) as address:
        print(f"{options.checkpoint} at {address} until Ctrl-C", flush=True)
        stop.wait()
        print()


def _describe(exported: Exported) -> str:
    """Return a line about an exported file: its size, and how far its results differ from torch's."""
    line = f"wrote {exported.file}, {exported.size / 1e6:.2f} MB; "
    if exported.parity is None:
        return line + "not compared with torch, because onnxruntime is not installed: pip install 'ldl[onnx]'"
    largest_difference, outliers, rows = exported.parity
    line += f"it differs from torch by {largest_difference:.1g} at most, on {rows - outliers} of {rows} random rows"
    return line + (f"; {outliers} lie on a threshold, where rounding decides" if outliers else "")
