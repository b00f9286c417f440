"""What is answered before torch is imported: the same as the parser would say, never from what was true before."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from places import CONFIGS, ROOT

from ldl.cli import training
from ldl.cli.command import command
from ldl.errors import LDLError
from ldl.plugins import discover
from ldl.running.describe import describe
from ldl.start import memory
from ldl.start.check import check
from ldl.start.help import help_page
from ldl.start.schema import BASES, Schema

COLD = 2.0
"""Seconds of processor time that help and a mistake may take; they take a tenth of it."""


@pytest.fixture(scope="module")
def schema() -> Schema:
    discover()
    return describe()


TABLE = ["-c", "tabular_ldlf"]
MISTAKES = [
    ["--data.batchsize", "3"],
    ["--data.init_args.batchsize=3"],
    ["--trainer.max_epohcs", "3"],
    ["--nonsense"],
    ["--wandb.moed=offline"],
    ["--model.hed", "LDLF"],
    ["--model.head", "Sofmax"],
    ["--model.head.class_path=Sofmax"],
    ["--model.backbone", "Tim"],
    ["--data", "UTKFaces"],
    ["--model.head.tress", "5"],
    ["--model.head", "Softmax", "--model.head.trees", "5"],
    ["--stage", "tset"],
    ["--model.decoder=mode"],
    ["-c", "nonsense"],
    ["-c", "tabular_ldlff"],
    ["-c", "configs/runs/tabular/ldlff.yaml"],
    [*TABLE, "--model.head.treees=5"],
    [*TABLE, "--data.turns=1"],
    [*TABLE, "-c", "heads/softmax", "--model.head.depth", "7"],
]


@pytest.mark.parametrize("args", MISTAKES, ids=" ".join)
def test_a_mistake_is_told_as_the_parser_tells_it(
    args: list[str], schema: Schema, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(LDLError) as before:
        check(args, schema)
    with pytest.raises(SystemExit) as ended:
        training.main(args)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"error: {before.value}\n"


def all_runs() -> list[list[str]]:
    return [["-c", str(path)] for path in sorted((CONFIGS / "runs").rglob("*.yaml"))]


RIGHT = [
    [],
    [*TABLE, "--data.path", "x", "--model.head.trees=3", "--model.head.init_args.depth", "5"],
    [*TABLE, "--data", "TabularValues", "--data.sigma", "2"],
    [*TABLE, "--model.head", "ldl.heads.softmax.Softmax", "--model.head.hidden", "[3]"],
    [*TABLE, "--model.optimizer.lr", "0.1", "--model.lr_scheduler", "StepLR", "--model.lr_scheduler.step_size=3"],
    ["--trainer.callbacks+=EarlyStopping", "--trainer.callbacks.monitor=val_kl", "--trainer.logger", "CSVLogger"],
    ["-c", "default", "-c", "heads/softmax", "--model.head.hidden", "null", "--stage", "crossval"],
    ["--ckpt_path", "a/checkpoints/last.ckpt", "--data.anything", "3"],
    ["-c", "model: {head: LDLF}", "--model.head.trees", "3", "--data", "Bags", "--data.path=x"],
    ["-c", "heads/softmax", "-c", "model: {head: LDLF}  # R&D", "--model.head.trees", "3"],
    ["-c", "heads/softmax", "-c", "model: {head: [", "--model.head.trees", "3"],
    ["-c", "compare/tabular", "--stage", "compare", "--data.path", "x"],
    [*TABLE, "-c", "tune/tabular_ldlf", "--stage", "tune", "--data.path", "x", "--jobs", "2"],
    ["--model.backbone", "null", "--model.head", "{class_path: LDLF}", "--model.head.trees=3"],
    ["--print_config", "--seed_everything", "-1"],
]


@pytest.mark.parametrize("args", [*RIGHT, *all_runs()], ids=" ".join)
def test_what_may_be_right_is_left_to_the_parser(args: list[str], schema: Schema) -> None:
    check(args, schema)


def test_help_has_everything(schema: Schema) -> None:
    # Other tests have classes of their own.
    schema = replace(schema, classes=tuple(entry for entry in schema.classes if entry.path.startswith("ldl.")))
    front = help_page(["--help"], schema, {"audit": "looks at a table"}) or ""
    lines = front.splitlines()
    assert len(lines) < 90 and max(map(len, lines)) <= 120
    for entry in schema.classes:
        assert f"  {entry.name} " in front
    assert front.index("LDLF") < front.index("UTKFace") < front.index("audit") < front.index("  --stage")
    assert "--trainer.max_epochs" not in front
    assert "--trainer.max_epochs" in (help_page(["--help.trainer"], schema, {}) or "")
    assert "--model.mixup" in (help_page(["--help.model"], schema, {}) or "")
    for base in BASES:
        listed = help_page([f"--{base}.help"], schema, {}) or ""
        assert [line.split()[0] for line in listed.splitlines()[1:]] == [entry.name for entry in schema.of(base)]
        for entry in schema.of(base):
            page = help_page([f"--{base}.help", entry.name], schema, {}) or ""
            assert all(f"--{base}.{option.name}" in page for option in entry.options)
    assert help_page(["--model.optimizer.help", "SGD"], schema, {}) is None


def test_a_short_option_takes_a_line_and_loses_nothing(schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    for width, beside in (("100", True), ("60", False)):
        monkeypatch.setenv("COLUMNS", width)
        lines = (help_page(["--help"], schema, {}) or "").splitlines()
        (at,) = (place for place, line in enumerate(lines) if line.startswith("  -c, --config"))
        assert ("several compose." in lines[at]) is beside
        assert "by name" in lines[at + 1 - beside]
        assert "several compose." in "".join(lines[at : at + 3])
        (jobs,) = (place for place, line in enumerate(lines) if line.startswith("  --jobs"))
        assert lines[jobs].endswith("default 1") and "Processes" in lines[jobs + 1]


def test_help_on_faces_names_columns_and_protocols(schema: Schema) -> None:
    page = help_page(["--data.help=FaceFolder"], schema, {}) or ""
    assert "stratified" in page and "x0, y0, x1, y1" in page and "person" in page
    assert len(page.splitlines()) < 80 and "HorizontalFlip" not in page


@pytest.mark.parametrize("args", [["--help.trainr"], ["--model.head.help", "Sofmax"], ["--data.help=UTKFaces"]])
def test_help_on_what_does_not_exist(args: list[str], schema: Schema) -> None:
    with pytest.raises(LDLError, match="did you mean '(trainer|Softmax|UTKFace)'"):
        help_page(args, schema, {})


def test_a_schema_survives_its_file(schema: Schema) -> None:
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a plugin, made before the process began."""
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mine.py").write_text("A = 1\n")
    monkeypatch.setattr(memory, "STARTED", max(p.stat().st_mtime_ns for p in tmp_path.rglob("*")) + 1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    return tmp_path


SMALL = Schema((), ())


def test_nothing_stale_is_recalled(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory.recall() is None
    helper = project / "helper.py"
    helper.write_text("B = 1\n")
    monkeypatch.setattr(memory, "STARTED", max(memory.STARTED, helper.stat().st_mtime_ns + 1))
    monkeypatch.setattr("ldl.start.stamp._sources", lambda folder: iter(()))  # other work may go on in the checkout
    for change in (
        lambda: (project / "plugins" / "mine.py").write_text("A = 2\n"),
        lambda: (project / "plugins" / "another.py").write_text(""),
        lambda: (project / "plugins" / "another.py").unlink(),
        lambda: helper.write_text("B = 2\n"),
        helper.unlink,
    ):
        monkeypatch.setattr(memory, "STARTED", 2**63)
        memory.store(SMALL, [str(helper)])
        assert memory.recall() == SMALL
        change()
        assert memory.recall() is None


def test_what_was_changed_since_the_start_is_not_stored(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ldl.start.stamp._sources", lambda folder: iter(()))
    (project / "plugins" / "mine.py").write_text("A = 3\n")
    memory.store(SMALL, [])
    assert memory.recall() is None


def test_a_cache_that_cannot_be_written_or_read_is_no_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "STARTED", 2**63)
    (project / "cache").write_text("a file")
    memory.store(SMALL, [])
    assert memory.recall() is None
    (project / "cache").unlink()
    memory.store(SMALL, [])
    next((project / "cache").rglob("*.json")).write_text("{")
    assert memory.recall() is None


def test_a_cold_start_takes_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Learns once, in a process of its own, and answers from then on; also what a plugin brings."""
    (tmp_path / "plugins").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LDL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    command(["new", "head", "Quick"])
    code = "import sys, time; from ldl.cli.command import command\ntry: command()\nfinally: print(time.process_time())"

    def say(*args: str) -> tuple[str, float]:
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True)
        *said, seconds = done.stdout.splitlines()
        return done.stderr + "\n".join(said), float(seconds)

    assert "Quick" in say("heads")[0]
    for args, words in (
        (["--help"], "Quick"),
        (["--data.batchsize", "3"], "did you mean 'batch_size'"),
        (["-c", "nonsense"], "configuration nonsense does not exist"),
        (["--stage", "tset"], "stage is 'tset'"),
        (["--model.head", "Quik"], "did you mean 'Quick'"),
        (["traain"], "no verb 'traain'"),
    ):
        said, seconds = say(*args)
        assert words in said and seconds < COLD, args
