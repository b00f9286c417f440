"""Subcommands that train nothing: export and demo of a checkpoint, a list of runs, the benchmark of edges."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path

from ldl.command.options import CommandParser, check_replaceable
from ldl.deploy.demo_server import serving
from ldl.deploy.export import Exported
from ldl.deploy.export import export as export_checkpoint
from ldl.edges.evaluation import add_options, evaluate
from ldl.errors import LDLError
from ldl.run.output import silence
from ldl.search.runs import as_table, comparison, find_run, find_runs, listing, select

PORTS = 65535


def export(args: list[str]) -> None:
    """Export a checkpoint to an ONNX file that runs without ldl: preprocessing, network, head, values and intervals."""
    parser = CommandParser("export", export.__doc__)
    parser.add_argument("checkpoint", type=Path, help="a checkpoint, such as RUN/checkpoints/last.ckpt")
    parser.add_argument("--to", default="onnx", help="format of the file, onnx")
    parser.add_argument("--out", type=Path, help="file to write; by default beside the checkpoint")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    given = parser.parse_args(args)
    silence()
    if not given.checkpoint.is_file():
        raise LDLError(f"no checkpoint at {given.checkpoint}; give a file, such as RUN/checkpoints/last.ckpt")
    out = given.out or given.checkpoint.with_suffix(".onnx")
    print(exported(export_checkpoint(given.checkpoint, out, given.to, given.force)))


def exported(done: Exported) -> str:
    """Return a line about an exported file: its size, and how far its results differ from torch's."""
    line = f"wrote {done.file}, {done.size / 1e6:.2f} MB; "
    if done.parity is None:
        return line + "not compared with torch, because onnxruntime is not installed: pip install 'ldl[onnx]'"
    largest, apart, rows = done.parity
    line += f"it differs from torch by {largest:.1g} at most, on {rows - apart} of {rows} random rows"
    return line + (f"; {apart} lie on a threshold, where rounding decides" if apart else "")


def demo(args: list[str]) -> None:
    """Show a trained model on a local web page: an image or a row, its distribution, and its evidence."""
    parser = CommandParser("demo", demo.__doc__)
    parser.add_argument("checkpoint", help="a model of rows, or of crops of images, such as RUN/checkpoints/last.ckpt")
    parser.add_argument("--detector", help="detector of faces in images: mtcnn")
    parser.add_argument("--port", type=int, default=7860, help="port on this machine (%(default)s); 0: a free one")
    given = parser.parse_args(args)
    if not 0 <= given.port <= PORTS:
        raise LDLError(f"--port {given.port} must be in 0..{PORTS}")
    silence()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Without this handler, the signal would end the process before it deletes its images.
        signal.signal(number, lambda *_: ended.set())
    with serving(given.checkpoint, given.port, given.detector) as address:
        print(f"{given.checkpoint} at {address} until Ctrl-C", flush=True)
        ended.wait()
        print()


def runs(args: list[str]) -> None:
    """List the runs in a folder with their results, filtered and sorted, or compare two of them."""
    parser = CommandParser("runs", runs.__doc__)
    parser.add_argument("folder", nargs="?", default="runs", type=Path, help="folder of the runs (%(default)s)")
    parser.add_argument("--head", help="runs of this head only")
    parser.add_argument("--data", help="runs on these data only, as the list names them")
    parser.add_argument("--stage", help="runs of this stage only, such as crossval")
    parser.add_argument(
        "--where", action="append", default=[], metavar="OPTION=VALUE", help="runs with this option only; repeatable"
    )
    parser.add_argument("--sort", default="when", help="when (newest first), data, head, or a metric (best first)")
    parser.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two runs: folders, or parts of their names")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write all metrics of the listed runs")
    given = parser.parse_args(args)
    found, damaged = find_runs(given.folder)
    for line in damaged:
        print(f"left out: {line}", file=sys.stderr)
    if given.compare:
        print("\n".join(comparison(*(find_run(name, found) for name in given.compare))))
        return
    wanted, unknown = select(found, given.head, given.data, given.stage, given.where)
    shown = as_table(wanted, given.sort)
    print(
        "\n".join(listing(shown, given.sort)) if wanted else f"none of the {len(found)} runs in {given.folder} matches"
    )
    for line in unknown:
        print(line, file=sys.stderr)
    if given.csv:
        check_replaceable(given.csv, "--csv", "folder,when,data,protocol,")
        try:
            shown.to_csv(given.csv, index=False, errors="backslashreplace")
        except OSError as error:
            raise LDLError(f"--csv {given.csv} cannot be written: {error.strerror}; give another file") from error
        print(f"{len(shown)} runs: {given.csv}")


def edges_eval(args: list[str]) -> None:
    """Evaluate a folder of edge maps by the benchmark of BSDS500: ODS, OIS, AP."""
    parser = CommandParser("edges-eval", edges_eval.__doc__)
    add_options(parser)
    evaluate(parser.parse_args(args))
