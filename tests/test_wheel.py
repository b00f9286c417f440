"""The wheel and nothing but it, in an environment of its own and an empty folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from fakes.comments import save
from fakes.paths import ROOT

HEAD = '''
import torch
from torch import nn
from ldl.head import Head

class {name}(Head):
    """A linear layer and a softmax."""

    def build(self, in_features, labels):
        super().build(in_features, labels)
        self.layer = nn.Linear(in_features, len(labels))

    def forward(self, features):
        return torch.softmax(self.layer(features).float(), -1)
'''
pytestmark = pytest.mark.slow

QUIET = ("--wandb.mode=disabled", "--trainer.enable_progress_bar=false", "--trainer.max_epochs=1")


class Installed:
    """An environment with the wheel in it, and an empty folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.environment, self.folder = folder / "venv", folder / "empty"
        self.folder.mkdir()
        self.packages = self.environment / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
        # No PYTHONPATH, no project: what is found is what is installed.
        self.variables = {"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "1"}

    def __call__(self, command: str, *args: str, **variables: str) -> str:
        words, known = [str(self.environment / "bin" / command), *args], self.variables | variables
        done = subprocess.run(words, cwd=self.folder, env=known, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    @contextmanager
    def begun(self, *args: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """Run ``ldl`` within the block, and stop it at the end."""
        words, known = [str(self.environment / "bin" / "ldl"), *args], self.variables | variables
        with subprocess.Popen(words, cwd=self.folder, env=known, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.terminate()


@pytest.fixture(scope="module")
def ldl(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    # Building writes beside what is built.
    shutil.copytree(ROOT, source, ignore=lambda path, names: {*names} - _built(Path(path), names))
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "."]
    subprocess.run([*build, "-w", str(folder)], cwd=source, check=True)
    shutil.rmtree(source)
    made = Installed(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.environment)], check=True)
    install = [sys.executable, "-m", "pip", "--python", str(made.environment / "bin" / "python"), "install", "-q"]
    subprocess.run([*install, "--no-deps", "--no-index", str(next(folder.glob("*.whl")))], check=True)
    # The packages that ldl needs are those of the running environment; its .pth files, the checkout's, are not read.
    (made.packages / "running.pth").write_text(f"{sysconfig.get_path('purelib')}\n{sysconfig.get_path('platlib')}\n")
    return made


def _built(folder: Path, names: list[str]) -> set[str]:
    """What a wheel is made from."""
    if folder == ROOT:
        return {"ldl", "configs", "pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE"}
    return {name for name in names if name != "__pycache__"}


def test_it_brings_all_configurations_and_no_more(ldl: Installed) -> None:
    installed = ldl.packages / "ldl"
    brought = {path.relative_to(installed / "configs") for path in (installed / "configs").rglob("*.yaml")}
    assert brought == {path.relative_to(ROOT / "configs") for path in (ROOT / "configs").rglob("*.yaml")}
    assert (installed / "py.typed").is_file() and any((installed / "command" / "templates").glob("*.txt"))
    assert {path.name for path in (installed / "examples").iterdir()} == {"README.md", "nodules.csv", "readings.csv"}
    licences = ldl.packages / "ldl-0.2.0.dist-info" / "licenses"
    assert (licences / "LICENSE").is_file() and (licences / "ldl/examples/README.md").is_file()
    assert {path.name for path in ldl.packages.iterdir() if "ldl" in path.name} == {"ldl", "ldl-0.2.0.dist-info"}


def test_the_embedded_set_with_a_plugin_of_the_working_directory(ldl: Installed) -> None:
    (ldl.folder / "plugins").mkdir()
    (ldl.folder / "plugins" / "dropped.py").write_text(HEAD.format(name="DroppedHere"))
    (ldl.packages / "their_heads.py").write_text(HEAD.format(name="FromAPackage"))
    metadata = ldl.packages / "their_heads-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their_heads\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[ldl.plugins]\nheads = their_heads\nbad = not_there\n")
    ldl("ldl", *QUIET, "--data.turns=1", "--model.head=DroppedHere", "--run_dir=run")
    run = ldl.folder / "run"
    assert json.loads((run / "results.json").read_text())["head"] == "DroppedHere"
    assert (run / "checkpoints" / "last.ckpt").is_file() and any((run / "charts").glob("*.png"))
    said = ldl("ldl", "heads")
    assert "DroppedHere" in said and "FromAPackage" in said and "Binomial" not in said
    assert "bad (not_there) left out" in said
    assert ldl("ldl", "--version") == "ldl 0.2.0\n"


def test_a_table_by_the_name_of_a_configuration(ldl: Installed) -> None:
    random = np.random.default_rng(0)
    np.savez(ldl.folder / "t.npz", features=random.normal(size=(60, 4)), labels=random.dirichlet(np.ones(3), 60))
    options = ["--data.path", "t.npz", "--model.head.trees=5", "--run_dir", "forest"]
    # Compiling for a new place takes half a minute; five small trees grow in Python as well.
    ldl("python", "-m", "ldl", "-c", "tabular_structrf", *options, *QUIET, NUMBA_DISABLE_JIT="1")
    results = json.loads((ldl.folder / "forest" / "results.json").read_text())
    assert (results["head"], results["data"], results["folds"][0]["n_test"]) == ("StructRF", "TabularLDL", 6)


def test_the_example_from_audit_to_predictions(ldl: Installed) -> None:
    """One command each on the votes that come with ldl."""
    examples = ldl.packages / "ldl" / "examples"
    audit = ldl("ldl", "audit", "nodules.csv", "--votes", "readings.csv")
    assert str(examples / "nodules.csv") in audit and "Krippendorff's alpha 0.427" in audit
    run = ldl("ldl", "-c", "nodules", "--model.head.rounds=20", "--run_dir=nodules", *QUIET)
    assert f"taken from {examples / 'nodules.csv'}: votes" in run and "The model is worth" in run
    checkpoint = "nodules/checkpoints/last.ckpt"
    table = ["--data.path=nodules.csv", "--data.votes=readings.csv", "--data.folds=2"]
    ldl("ldl", "--stage", "compare", "-c", "compare/targets_of_counts", *table, "--run_dir=targets", *QUIET)
    rows = (ldl.folder / "targets" / "table.md").read_text()
    assert "| shares" in rows and "| majority" in rows
    ranked = ldl("ldl", "votes", "--next", "5", "nodules", "readings.csv", "--out", "next.csv")
    assert "gain" in ranked and len((ldl.folder / "next.csv").read_text().splitlines()) == 6
    ldl("ldl", "--stage", "predict", "--ckpt_path", checkpoint, "--data.path=nodules.csv", "--run_dir=new", *QUIET)
    assert len((ldl.folder / "new" / "predictions.csv").read_text().splitlines()) == 2674


def test_text_with_votes_to_a_served_prediction(ldl: Installed) -> None:
    """One command each on made-up comments, without a network, with a model of raters."""
    pytest.importorskip("wordllama", reason="pip install 'ldl[text]'")
    save(ldl.folder)
    offline = {"HF_HUB_OFFLINE": "1", "http_proxy": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
    data = ["--data.path=comments.csv", "--data.votes=votes.csv"]
    run = ldl("ldl", "-c", "text", *data, "--model.raters=bias", "--run_dir=text", *QUIET[:2], **offline)
    assert "text 'comment' (768 features by wordllama)" in run and "The model is worth" in run
    checkpoint = "text/checkpoints/last.ckpt"
    predict = ["--stage", "predict", "--ckpt_path", checkpoint, "--data.path=comments.csv", "--run_dir=kind"]
    ldl("ldl", *predict, *QUIET, **offline)
    assert len((ldl.folder / "kind" / "predictions.csv").read_text().splitlines()) == 121
    script = (
        f"import ldl; print(ldl.Predictor.from_checkpoint({checkpoint!r}).predict('comments.csv').distribution.shape)"
    )
    assert "(120, 2)" in ldl("python", "-c", script, **offline)
    with ldl.begun("demo", checkpoint, "--port=0", **offline) as page:
        assert page.stdout is not None
        [address] = re.findall(r"http://\S+", next(line for line in page.stdout if "Ctrl-C" in line))
        client = f"import gradio_client; page = gradio_client.Client({address!r}, verbose=False)"
        fields = "'thank you, lovely idea', 22, api_name='/predict'"
        served = ldl("python", "-c", f"{client}; print(page.predict({fields})[0]['data'])")
    assert "kind" in served
