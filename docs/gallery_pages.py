"""Run the examples of ``docs/examples`` while the site is built: each becomes a page and a notebook.

mkdocs loads this file as a hook. An example is a script in percent format (``# %% [markdown]``). It runs in an empty
folder that holds the CSV files of ``docs/examples``. An example that raises, or whose claim is false, ends the
build. A page shows the standard output and the images, without standard error. ``mkdocs serve`` runs an example again
only after its file has changed.
"""

import functools
import logging
import os
import shutil
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient
from nbconvert import MarkdownExporter
from traitlets.config import Config

LONGEST = 600
"""Longest time of a cell in seconds."""
CLAIMS = {
    "table": 'boosted["mean"]["kl"] < 0.8 * baseline["mean"]["kl"]',
    "votes": "2 < found.worth < 9 and low < found.worth < high",
    "faces": 'forest["mean"]["mae"] < 0.3 * baseline["mean"]["mae"]',
    "edges": "model_nll < 0.6 * baseline_nll",
    "bags": "accuracy > 0.75 and found > 0.9",
    "own_head": 'kl["Normal"] < kl["Softmax"] + 0.02',
    "sklearn_pipeline": "r2 > 0.3 and 0.83 < covered[-1] < 0.97",
    "export_onnx": 'difference < 1e-5 and "torch or ldl loaded: False" in served.stdout',
}
"""Conditions on the variables of an example at its end."""
BUTTON = "[{text}]({name}){{ .md-button download }}"
log = logging.getLogger("mkdocs.hooks.gallery")


@functools.cache
def run(path: Path, text: str) -> dict[str, str | bytes]:
    """Run an example.

    Args:
        path: The script.
        text: Its content.

    Returns:
        The content of its page, notebook, images and thumbnail by their names.

    Raises:
        nbclient.exceptions.CellExecutionError: A cell raises, or the claim is false.
    """
    start = time.perf_counter()
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.cells.append(nbformat.v4.new_code_cell(f"assert {CLAIMS[path.stem]}"))
    with tempfile.TemporaryDirectory() as folder:
        for table in path.parent.glob("*.csv"):
            shutil.copy(table, folder)
        client = NotebookClient(notebook, timeout=LONGEST, resources={"metadata": {"path": folder}})
        client.execute(env=os.environ | {"LDL_CACHE": "cache"})
    notebook.cells.pop()  # the claim
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    exporter = MarkdownExporter(config=Config({"CoalesceStreamsPreprocessor": {"enabled": True}}))
    body, resources = exporter.from_notebook_node(notebook, {"output_files_dir": f"{path.stem}_files"})
    title, rest = body.lstrip().split("\n", 1)
    buttons = [
        BUTTON.format(text="Notebook", name=f"{path.stem}.ipynb"),
        BUTTON.format(text="Script", name=path.name),
    ]
    page = "\n".join([title, rest.rstrip(), "", "## Download", "", *buttons, ""])
    log.info("%s ran in %.0f s", path.name, time.perf_counter() - start)
    images = resources["outputs"]
    thumbnail = {f"{path.stem}.png": images[name] for name in images if name.endswith(".png")}  # the last one
    return {
        f"{path.stem}.md": page,
        f"{path.stem}.ipynb": jupytext.writes(notebook, fmt="ipynb"),
        **images,
        **thumbnail,
    }


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, notebooks and images of all examples."""
    for path in sorted((Path(config.docs_dir) / "examples").glob("*.py")):
        for name, content in run(path, path.read_text(encoding="utf-8")).items():
            files.append(File.generated(config, f"examples/{name}", content=content))
    return files
