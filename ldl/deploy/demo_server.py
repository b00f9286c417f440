"""Serve the demo page on this machine only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ldl.data.images.locators import find_locator
from ldl.deploy.demo_page import import_gradio, make_page
from ldl.errors import explaining
from ldl.inference import Predictor

HOST = "127.0.0.1"
HOSTS = (HOST, "localhost")
"""Names of this machine in requests. A request with another name comes from a web page that gave its own name to this
address (DNS rebinding), and would read the answer."""
PRIVATE = {"GRADIO_ANALYTICS_ENABLED": "False", "HF_HUB_DISABLE_TELEMETRY": "1"}
"""Environment variables that switch off the telemetry of gradio and of the Hugging Face hub."""


@contextmanager
def serving(checkpoint: str | Path, port: int, detector: str | None = None) -> Iterator[str]:
    """Serve the page of a checkpoint within the block and yield its address; delete uploaded images at the end.

    Only requests to this machine by its own name are answered.

    Args:
        checkpoint: The checkpoint file.
        port: Port on this machine; 0 takes a free port.
        detector: Name of the face detector; None uses whole images.

    Raises:
        LDLError: gradio is not installed, the port is taken, or an error of ``Predictor.from_checkpoint`` or
            ``make_page``.
    """
    os.environ.update(PRIVATE)
    _reach_this_machine_directly()
    gradio = import_gradio()
    from starlette.middleware import Middleware
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    predictor = Predictor.from_checkpoint(checkpoint)
    finds = None if detector is None else find_locator(predictor.task.preprocessing or {}).find_detector(detector)
    title = f"{type(predictor.task.head).__name__}: {checkpoint}"
    with tempfile.TemporaryDirectory(prefix="ldl_demo_") as folder, _temporary_files_in(folder):
        page = make_page(predictor, title, Path(folder), finds)
        # Browsers would load gradio's default fonts from Google.
        theme = gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["monospace"])
        with explaining(f"port {port} of {HOST} cannot be taken", "give another with --port", (OSError,)):
            _, address, _ = page.launch(
                server_name=HOST,
                server_port=port or None,
                share=False,
                quiet=True,
                show_error=True,
                prevent_thread_lock=True,
                ssr_mode=False,
                enable_monitoring=False,
                footer_links=["api"],
                max_file_size="100mb",
                theme=theme,
                app_kwargs={"middleware": [Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS)]},
            )
        try:
            yield str(address)
        finally:
            page.close(verbose=False)


def _reach_this_machine_directly() -> None:
    """Let no proxy of the environment answer for this machine: gradio sends a request to its own page at the start."""
    excluded = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    hosts = [*filter(None, excluded.split(",")), *HOSTS]
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = ",".join(dict.fromkeys(hosts))


@contextmanager
def _temporary_files_in(folder: str) -> Iterator[None]:
    """Let gradio keep its temporary files in this folder within the block."""
    before = os.environ.get("GRADIO_TEMP_DIR")
    os.environ["GRADIO_TEMP_DIR"] = folder
    try:
        yield
    finally:
        del os.environ["GRADIO_TEMP_DIR"]
        if before is not None:
            os.environ["GRADIO_TEMP_DIR"] = before
