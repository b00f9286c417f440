"""An exported file runs without torch; models that cannot be exported raise one line."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fakes.paths import ROOT
from fakes.tasks import AGES, WIDTH, rows, small_task
from torch import Tensor

from ldl.deploy.export import export
from ldl.errors import LDLError
from ldl.head import Head
from ldl.heads import Softmax
from ldl.inference import Predictor
from ldl.methods.torch_utils import traced
from ldl.task import Task

NAMES = [f"feature {number}" for number in range(WIDTH)]


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
    words = ["import sys; sys.argv = sys.argv[1:]; " + code, script, model, tmp_path / "rows.csv"]
    done = subprocess.run([sys.executable, "-c", *map(str, words)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    predictions = Predictor.from_checkpoint(run / "checkpoints" / "last.ckpt").predict(some)
    assert predictions.value is not None
    wanted = [
        f"row {row}: {AGES.names[p.argmax()]} with {p.max():.0%}, value {value:.4f} years, 90% in {low:.4f} to {up:.4f}"
        for row, (p, value, (low, up)) in enumerate(
            zip(predictions.distribution, predictions.value, predictions.interval(0.9))
        )
    ]
    assert done.stdout.splitlines() == wanted


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
