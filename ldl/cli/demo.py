"""Show a trained model on a page of this machine: a picture or a row, its distribution, and what that rests on."""

from __future__ import annotations

import signal
import threading

from ldl.cli.command import VerbParser
from ldl.demo.server import serving
from ldl.errors import LDLError
from ldl.running.quiet import silence

PORTS = 65535


def run(args: list[str]) -> None:
    """Serve the page until Ctrl-C. Raises LDLError."""
    parser = VerbParser("demo", __doc__)
    parser.add_argument("checkpoint", help="of a model of rows, or of crops of pictures: RUN/checkpoints/last.ckpt")
    parser.add_argument("--detector", help="what finds the faces in pictures: mtcnn, or an ONNX file")
    parser.add_argument("--port", type=int, default=7860, help="where to listen, on this machine alone; 0: a free one")
    given = parser.parse_args(args)
    if not 0 <= given.port <= PORTS:
        raise LDLError(f"--port {given.port} must be in 0..{PORTS}")
    silence()
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A page that is killed would leave its pictures behind.
        signal.signal(number, lambda *_: ended.set())
    with serving(given.checkpoint, given.port, given.detector) as address:
        print(f"{given.checkpoint} at {address} until Ctrl-C", flush=True)
        ended.wait()
        print()
