"""Loggers: a CSV file always, Weights & Biases where it is wanted."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pytorch_lightning.loggers import Logger, WandbLogger
from pytorch_lightning.loggers.logger import rank_zero_experiment

from ldl.collective import process_rank
from ldl.running.metrics_file import MetricsFile

QUIET: dict[str, Any] = {"show_info": False, "quiet": True}


@dataclass
class WandbOptions:
    """Weights & Biases.

    Args:
        mode: ``auto`` is online where you are logged in, else offline; ``disabled`` switches it off.
        project: Project of the run.
        name: Name of the run; None takes the run directory's, with data and head.
        group: Group of the run; cross-validation makes one of its own.
        tags: Tags of the run.
    """

    mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    project: str = "ldl"
    name: str | None = None
    group: str | None = None
    tags: Sequence[str] = ()


def resolve_mode(mode: str) -> str:
    """What ``auto`` comes to."""
    if mode != "auto":
        return mode
    if os.environ.get("WANDB_MODE"):
        return os.environ["WANDB_MODE"]
    if process_rank() != 0:
        return "disabled"
    import wandb

    try:
        logged_in = wandb.login(prompt=False, verify=False)
    except Exception as error:
        print(f"wandb login failed: {error}", file=sys.stderr)
        logged_in = False
    return "online" if logged_in else "offline"


class QuietWandb(WandbLogger):
    """Weights & Biases in one line, at the start; its warnings and errors are shown as ever.

    Args:
        tells: Whether to print the line.
        of_fold: Whether the line is of all folds of a cross-validation, which are one group.
        options: See ``WandbLogger``.
    """

    def __init__(self, tells: bool = True, of_fold: bool = False, **options: Any) -> None:
        import wandb

        super().__init__(**options, settings=wandb.Settings(**QUIET))
        # Lightning hands it on, and wandb warns that it has no effect.
        self._wandb_init.pop("anonymous", None)
        self.tells, self.of_fold = tells, of_fold

    @property
    @rank_zero_experiment
    def experiment(self) -> Any:
        if self._experiment is not None:
            return self._experiment
        with _no_launch():
            run = super().experiment
        if self.tells:
            print(f"wandb: {_place(run, self.of_fold)}", flush=True)
        return run


def _place(run: Any, of_fold: bool) -> str:
    """Where a run, or the group of its fold, is to be seen, or how it gets there."""
    if not run.offline:
        return f"group {run.group} of {run.project_url}" if of_fold else str(run.url)
    folder = Path(run.dir).parent
    if of_fold:
        folder = folder.parents[2] / "fold_*" / "wandb" / "offline-run-*"
    folder = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return f"kept offline; `wandb login`, then `wandb sync {folder}` sends it"


@contextmanager
def _no_launch() -> Iterator[None]:
    """Begin a run without asking wandb's launch agents for inputs: importing their code takes seconds.

    Who has given such inputs has imported it.
    """
    from wandb.sdk.wandb_run import Run

    name = "_detect_and_apply_job_inputs"
    before = getattr(Run, name, None)
    if before is None or "wandb.sdk.launch" in sys.modules:
        yield
        return
    setattr(Run, name, lambda self: None)
    try:
        yield
    finally:
        setattr(Run, name, before)


def make_loggers(
    run_dir: Path,
    options: WandbOptions,
    config: dict[str, Any],
    first_step: int = 0,
    name: str | None = None,
    tells: bool = True,
    of_fold: bool = False,
) -> list[Logger]:
    """The loggers of one run: ``run_dir/metrics.csv``, and wandb unless disabled. Nothing is written yet.

    Args:
        run_dir: The run directory.
        options: What is said about wandb.
        config: The whole configuration, for wandb.
        first_step: Step of the checkpoint that is resumed.
        name: Name of the run in wandb where ``options`` have none; None takes the run directory's.
        tells: Whether to say where wandb keeps the run.
        of_fold: Whether the run is a fold, in a folder beside those of the others.
    """
    loggers: list[Logger] = [MetricsFile(run_dir, first_step)]
    if options.mode != "disabled" and process_rank() == 0:
        import wandb

        # Here alone it is said that warnings are wanted, and news are not: settings of a run come too late.
        wandb.setup(settings=wandb.Settings(**QUIET))
    mode = resolve_mode(options.mode)
    if mode != "disabled":
        loggers.append(
            QuietWandb(
                tells,
                of_fold,
                save_dir=run_dir,
                project=options.project,
                name=options.name or name or run_dir.name,
                group=options.group,
                tags=list(options.tags),
                mode="online" if mode == "online" else "offline",
                config=config,
                **_going_on(run_dir, mode == "online") if first_step else {},
            )
        )
    return loggers


def _going_on(run_dir: Path, online: bool) -> dict[str, Any]:
    """What lets a run that is resumed in its own directory stay one; ``wandb sync`` puts parts of one id together."""
    found = (re.fullmatch(r"(?:offline-)?run-(\d+_\d+)-(.+)", path.name) for path in run_dir.glob("wandb/*run-*"))
    ids = [match[2] for match in sorted(filter(None, found), key=lambda match: match[1])]
    # Offline, wandb warns that it cannot resume.
    return {"id": ids[-1], "resume": "allow" if online else None} if ids else {}


def finish(loggers: Sequence[Logger]) -> None:
    """Close the runs, so that the next fold gets one of its own."""
    if any(isinstance(logger, WandbLogger) for logger in loggers) and process_rank() == 0:
        import wandb

        wandb.finish()
