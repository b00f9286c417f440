"""Runs that are ended at a random moment and resumed: equal to the last bit to a run that was never ended."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from fakes.forks import Run, different
from fakes.paths import ROOT

from ldl.command import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("blank_charts")]

QUIET = (
    "--wandb.mode disabled --trainer.accelerator cpu --trainer.enable_progress_bar false "
    "--trainer.enable_model_summary false"
)
DIGITS = "--data.turns 1 --data.folds 3 --data.batch_size 100 --trainer.max_epochs 8"
LDLF = f"{DIGITS} --model.head.trees 3 --model.head.depth 4 --model.head.hidden [16] --model.head.dropout 0.2"
JOINT = f"{LDLF} --model.head.outputs 10 --model.head.batches 7 --model.head.tree_dropout 0.3"
SOFTMAX = f"--model.head Softmax {DIGITS} --model.mixup 0.4 --model.backbone.flatten true"


@dataclass(frozen=True)
class Case:
    """A run by its configuration, its options, and the number of its processes."""

    options: str
    processes: int = 1
    config: str = "default.yaml"


CASES = {
    "LDLF": Case(JOINT),
    "LDLF, best selected, loader process": Case(f"{JOINT} --select best --data.num_workers 1"),
    "Softmax of two, mixup": Case(SOFTMAX, 2),
    "StructRF": Case("--model.head.trees 20 --model.head.depth 10", 1, "runs/tabular/structrf.yaml"),
    "cross-validation of two": Case(f"{JOINT} --trainer.max_epochs 2 --stage crossval", 2),
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM)


@pytest.mark.parametrize("name", CASES)
def test_a_run_that_was_ended_resumes_exactly(name: str, ldl_data: Path, tmp_path: Path) -> None:
    case = CASES[name]
    # Forks of a process with more threads would wait for the others for ever.
    torch.set_num_threads(1)
    options = ["-c", str(ROOT / "configs" / case.config), *QUIET.split(), *case.options.split()]
    if "tabular" in case.config:
        options += ["--data.path", str(ldl_data / "ldl" / "SJAFFE.mat"), "--data.val_fraction", "0.1"]
    # In this process, so that numba compiles once: forked processes have it. They cannot share a server of loaders.
    main([*options, "--data.num_workers", "0", "--run_dir", str(tmp_path / "first")])
    unbroken, log = tmp_path / "unbroken", tmp_path / "unbroken.log"
    run = Run([*options, "--run_dir", str(unbroken)], log, case.processes)
    assert run.wait() == 0, log.read_text()[-2000:]
    seconds = time.monotonic() - run.begun
    rng = np.random.default_rng(list(CASES).index(name))
    for sent in SIGNALS:
        ended_and_resumed(case, options, sent, rng, seconds, tmp_path)


def ended_and_resumed(
    case: Case, options: list[str], sent: signal.Signals, rng: np.random.Generator, seconds: float, folder: Path
) -> None:
    """Send a run a signal at a random moment, resume it, and compare it with ``folder/unbroken``."""
    place, log = folder / sent.name, folder / f"{sent.name}.log"
    while True:
        run = Run([*options, "--run_dir", str(place)], log, case.processes)
        if run.wait(float(rng.uniform(0.02, 0.98) * seconds)) is None:
            run.kill(sent)
            code = run.wait()
            # Unless it has ended by itself in the meantime.
            if sent != signal.SIGKILL or code != 0:
                break
        run.end()
        shutil.rmtree(place)
    assert run.end(), "processes stayed"
    assert code in ({-sent} if sent == signal.SIGKILL else {128 + sent, 0}), log.read_text()[-2000:]
    last = place / "checkpoints" / "last.ckpt"
    again = ["--ckpt_path", str(last)] if last.is_file() else []
    run = Run([*options, "--run_dir", str(place), *again], log, case.processes)
    assert run.wait() == 0, log.read_text()[-2000:]
    assert run.end(), "processes stayed"
    assert different(place, folder / "unbroken") == []
