"""The run directory after an error: only files that the run has made are removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from ldl.command.messages import user_errors
from ldl.errors import LDLError
from ldl.run.run_dir import cleanup_on_error


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".")).write_text(text)


def test_only_what_the_run_has_made_goes(tmp_path: Path) -> None:
    old = tmp_path / "old"
    write(old, config_yaml="before", notes_txt="mine")
    with pytest.raises(LDLError), cleanup_on_error(old):
        write(old, config_yaml="after", metrics_csv="x")
        write(old / "charts", a_png="x")
        raise LDLError("no")
    assert {path.name: path.read_text() for path in old.iterdir()} == {"config.yaml": "before", "notes.txt": "mine"}
    new = tmp_path / "runs" / "data_head" / "time"
    with pytest.raises(LDLError), cleanup_on_error(new):
        write(new, config_yaml="after")
        write(new / "fold_0" / "wandb")
        (new / "fold_0" / "wandb" / "latest-run").symlink_to(old)
        raise LDLError("no")
    assert [path.name for path in tmp_path.iterdir()] == ["old"] and len(list(old.iterdir())) == 2


def test_what_others_make_there_meanwhile_stays(tmp_path: Path) -> None:
    """Where the folder of all runs, or the working directory, is given."""
    with pytest.raises(LDLError), cleanup_on_error(tmp_path):
        write(tmp_path, config_yaml="ours", paper_txt="not")
        write(tmp_path / "other", config_yaml="not", last_ckpt="not")
        raise LDLError("no")
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")}
    assert there == {"paper.txt", "other/config.yaml", "other/last.ckpt"}


@pytest.mark.parametrize("kept", ["checkpoints/last.ckpt", "results.json", "predictions.csv", "fold_0/results.json"])
def test_what_has_results_stays(kept: str, tmp_path: Path) -> None:
    with pytest.raises(LDLError), cleanup_on_error(tmp_path / "run"):
        write(tmp_path / "run", config_yaml="x")
        write((tmp_path / "run" / kept).parent)
        (tmp_path / "run" / kept).write_text("x")
        raise LDLError("no")
    assert (tmp_path / "run" / "config.yaml").is_file() and (tmp_path / "run" / kept).is_file()


def test_other_errors_keep_what_they_need_to_be_found(tmp_path: Path) -> None:
    with pytest.raises(KeyError), cleanup_on_error(tmp_path / "run"), user_errors():
        write(tmp_path / "run", config_yaml="x")
        raise KeyError("a mistake of ours")
    assert (tmp_path / "run" / "config.yaml").is_file()
