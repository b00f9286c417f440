"""What an exported file says of itself, what is refused, and that it runs where there is no torch."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import pytorch_lightning as pl
from places import ROOT
from small_tasks import AGES, WIDTH, rows, small_task
from torch import Tensor

from ldl.backbones.base import Identity
from ldl.callbacks import Calibrate
from ldl.command.console import command
from ldl.deploy.export import export
from ldl.deploy.export_metadata import of_weights
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import MaxEnt, Softmax
from ldl.inference import Predictor
from ldl.labels import LabelSpace
from ldl.methods.conformal import Conformal
from ldl.methods.torch_utils import traced
from ldl.task import Task

NAMES = [f"feature {number}" for number in range(WIDTH)]
CONFIG = "data: {class_path: ldl.data.TabularLDL, init_args: {path: ldl/SJAFFE.mat}}"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run's folder with a checkpoint of a table of ages, whose intervals are calibrated."""
    folder = tmp_path_factory.mktemp("run")
    task = small_task(MaxEnt(), AGES)
    assert task.preprocessing is not None
    task.preprocessing["features"] = NAMES
    rng = np.random.default_rng(0)
    task.calibration = Conformal.fit(AGES, rng.dirichlet(np.ones(6), 30), rng.choice(AGES.axes[0], 30))
    options = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = pl.Trainer(accelerator="cpu", callbacks=[Calibrate()], **options)
    trainer.strategy.connect(task)
    trainer.save_checkpoint(folder / "checkpoints" / "last.ckpt")
    (folder / "config.yaml").write_text(CONFIG)
    return folder


@pytest.fixture(scope="module")
def model(run: Path) -> Path:
    """Its ONNX file."""
    command(["export", str(run / "checkpoints" / "last.ckpt"), "--out", str(run / "model.onnx")])
    return run / "model.onnx"


@pytest.mark.slow
def test_onnx_of_probabilities(tmp_path: Path) -> None:
    done = export(small_task(Softmax()), tmp_path / "model.onnx")
    assert done.parity is not None and done.parity.apart == 0 and done.parity.largest <= 1e-5


@pytest.mark.slow
def test_it_runs_where_there_is_no_torch(run: Path, model: Path, tmp_path: Path) -> None:
    some = rows(5, seed=1)
    header = ["name", *reversed(NAMES)]
    lines = [",".join([str(number), *map(repr, row[::-1].tolist())]) for number, row in enumerate(some)]
    (tmp_path / "rows.csv").write_text("\n".join([",".join(header), *lines]))
    script = ROOT / "docs" / "snippets" / "without_torch.py"
    code = (
        "import runpy, sys; runpy.run_path(sys.argv[0], run_name='__main__'); "
        "assert not {'torch', 'ldl', 'sklearn'} & set(sys.modules)"
    )
    given = ["import sys; sys.argv = sys.argv[1:]; " + code, script, model, tmp_path / "rows.csv"]
    done = subprocess.run([sys.executable, "-c", *map(str, given)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = Predictor.from_checkpoint(run / "checkpoints" / "last.ckpt").predict(some)
    assert found.value is not None
    wanted = [
        f"row {row}: {AGES.names[p.argmax()]} with {p.max():.0%}, value {value:.4f} years, 90% in {low:.4f} to {up:.4f}"
        for row, (p, value, (low, up)) in enumerate(zip(found.distribution, found.value, found.interval(0.9)))
    ]
    assert done.stdout.splitlines() == wanted


@pytest.mark.slow
def test_the_file_says_what_it_is(model: Path) -> None:
    loaded = onnx.load(model)
    said = {entry.key: entry.value for entry in loaded.metadata_props}
    assert LabelSpace.from_dict(json.loads(said["labels"])) == AGES and said["unit"] == "years"
    assert json.loads(said["input"]) == {"type": "float64", "shape": [-1, WIDTH]}
    assert json.loads(said["preprocessing"])["features"] == NAMES
    assert said["intervals"].startswith("conformal, of rows like the 30 validation rows")
    assert json.loads(said["outputs"]) == [output.name for output in loaded.graph.output]
    assert said["license_data"].startswith("SJAFFE: academic use") and said["license_code"].startswith("MIT")
    assert said["license_weights"].startswith("none")
    assert loaded.producer_name == "ldl" and loaded.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


@pytest.mark.slow
def test_nothing_is_replaced_unless_told_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint, out = str(run / "checkpoints" / "last.ckpt"), str(run / "another.onnx")
    command(["export", checkpoint, "--to", "onnx", "--out", out])
    line = capsys.readouterr().out
    assert line.startswith(f"wrote {out}, 0.1") and "on 72 of 72 random rows" in line and line.count("\n") == 1
    with pytest.raises(SystemExit):
        command(["export", checkpoint, "--to", "onnx", "--out", out])
    assert "is there already; give --force" in capsys.readouterr().err
    command(["export", checkpoint, "--out", out, "--force"])
    said = {entry.key: entry.value for entry in onnx.load(out).metadata_props}
    assert said["head"] == "MaxEnt"


def test_what_cannot_be_is_refused(run: Path, tmp_path: Path) -> None:
    checkpoint = run / "checkpoints" / "last.ckpt"
    with pytest.raises(LDLError, match="^format 'torchscript' is not onnx, the only format of exported models$"):
        export(checkpoint, tmp_path / "model.pt", "torchscript")
    with pytest.raises(LDLError, match="only a trained task can be exported"):
        export(Task(Softmax()), tmp_path / "model.onnx")


class Untraceable(Softmax):
    """Branches on a number of the features, which no graph holds."""

    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features * 2 if features.sum() > 0 else features)


class Drifting(Softmax):
    """Computes something else in a graph."""

    def forward(self, features: Tensor) -> Tensor:
        return super().forward(features * 2 if traced() else features)


@pytest.mark.slow
def test_a_file_that_says_something_else_is_not_kept(tmp_path: Path) -> None:
    task = small_task(Drifting(), AGES)
    with pytest.raises(LDLError, match="the ONNX file of Drifting is not kept: .* rows differ from torch"):
        export(task, tmp_path / "model.onnx")
    assert isinstance(task.head, Head) and not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_cannot_be_recorded_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(LDLError, match="^Untraceable on Identity cannot be recorded as ONNX: [^\\n]+$"):
        export(small_task(Untraceable(), AGES), tmp_path / "model.onnx")


def test_licences_of_a_model_without_networks_import_no_timm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run writes a card with them, and timm takes seconds."""
    monkeypatch.setitem(sys.modules, "timm", None)
    assert of_weights(Identity()).startswith("none but those of the data")
