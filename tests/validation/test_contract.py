"""A head of a user's that breaks the contract, or raises, is refused in one line before anything is trained."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ldl.command import main
from ldl.plugins import discover, left_out

pytestmark = pytest.mark.usefixtures("blank_charts")

PLACE = "broken_heads.py:"
CASES: dict[str, list[str]] = {
    "_NoInit": ["_NoInit.__init__ must call super().__init__() first"],
    "_NoBuild": ["_NoBuild.build must call super().build(in_features, labels) first"],
    "_GivesNaN": ["_GivesNaN.forward gives no distribution for row ", "smallest entry nan, sum nan"],
    "_GivesTooMuch": ["_GivesTooMuch.forward gives no distribution for row ", "sum 2;", "as after a softmax"],
    "_WrongShape": ["_WrongShape.forward gives (18,), not (18, 3)"],
    "_LossIsNumber": ["_LossIsNumber.loss must return a dict with the key 'loss'"],
    "_LossWithoutGradient": ["_LossWithoutGradient.loss has no gradient", "FittedHead"],
    "_RaisesInBuild": ["_RaisesInBuild.build raised AttributeError: ", "'sizes'", PLACE],
    "_RaisesInForward": ["_RaisesInForward.forward raised RuntimeError: ", "mat1 and mat2", PLACE, "LDL_TRACEBACK=1"],
    "_RaisesInInit": ["_RaisesInInit.__init__ raised OSError: no licence", PLACE],
    "_FitsNaN": ["_FitsNaN.forward gives no distribution for row 0 ", "its learned tensors are not finite"],
    "_KeepsAnObject": [
        "_KeepsAnObject is lost with its checkpoint",
        "(AttributeError: ",
        "what fit left in model_ is in no buffer",
    ],
    "_FillsAList": ["it predicts differently: what fit left in _table is in no buffer", "self.register_buffers("],
    "_MakesALayer": ["its state_dict cannot be loaded", 'Unexpected key(s) in state_dict: "layer.weight"'],
}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    rng = np.random.default_rng(0)
    path = tmp_path_factory.mktemp("table") / "table.npz"
    np.savez(path, features=rng.normal(size=(20, 4)), labels=rng.dirichlet(np.ones(3), 20))
    return [
        "--data=TabularLDL", f"--data.path={path}", "--data.val_fraction=0", "--model.backbone=null",
        "--trainer.max_epochs=1", "--trainer.enable_progress_bar=false", "--trainer.accelerator=cpu",
        "--trainer.enable_model_summary=false", "--wandb.mode=disabled",
    ]  # fmt: skip


def _refused(arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[str, str]:
    with pytest.raises(SystemExit) as exit_:
        main([*arguments, "--run_dir", str(folder / "run")])
    assert exit_.value.code == 2
    said = capsys.readouterr().err
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert not (folder / "run").exists()
    return line, said


@pytest.mark.parametrize("head", CASES)
def test_one_line_names_class_method_and_fault(
    head: str, arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line, said = _refused([*arguments, f"--model.head=fakes.broken_heads.{head}"], tmp_path, capsys)
    missing = [part for part in CASES[head] if part not in line]
    assert not missing, f"{missing} not in {line!r}"
    assert len(line) < 500 and "Traceback" not in said


def test_authors_may_see_the_traceback(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LDL_TRACEBACK", "1")
    line, said = _refused([*arguments, "--model.head=fakes.broken_heads._RaisesInForward"], tmp_path, capsys)
    assert "raised RuntimeError" in line and "Traceback" in said and "in forward" in said


def test_file_whose_name_python_cannot_import_is_left_out_with_the_fix(tmp_path: Path) -> None:
    (tmp_path / "my-head.py").write_text("raise RuntimeError\n")
    with pytest.warns(UserWarning, match=r"my-head\.py left out.*rename it"):
        assert not discover(tmp_path)
    del left_out[str(tmp_path / "my-head.py")]
